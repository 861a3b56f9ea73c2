import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubernetesAnswer } from '@transitd/access';
import { expect } from 'chai';
import { base64url, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { makeCertificate } from '../../../process/test/certificate.ts';
import { type Answer, type Served, served } from '../served.ts';
import { expectLogin } from './login-answer.ts';
import { callsOf, failed, clusterKeyPem as pem, reviewed, StubApiServer, tokenOf, web } from './stub-api-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'transitd-kubernetes-'));
const ca = readFileSync(makeCertificate(folder, 'cluster').cert_file, 'utf8');
after(() => rmSync(folder, { recursive: true }));

const stranger = await generateKeyPair('ES256');
const reviewer = 'token-of-the-reviewer';
const config = { kubernetes_host: 'https://api.example', kubernetes_ca_cert: ca, token_reviewer_jwt: reviewer };
const role = { bound_service_account_names: 'web', bound_service_account_namespaces: 'shop', audience: 'transitd' };
const denied = [403, 'permission denied'] as const;

describe('kubernetes logins', () => {
  let cluster: StubApiServer;
  let at: Served;
  let answer: ((token: string, body: object) => KubernetesAnswer | Promise<KubernetesAnswer>) | undefined;
  let pod: Partial<Record<'ca.crt' | 'token', string>>;

  beforeEach(async () => {
    cluster = new StubApiServer();
    cluster.reviewers.add(reviewer);
    [answer, pod] = [undefined, {}];
    at = await served({
      trustedProxies: ['127.0.0.0/8'],
      kubernetes: {
        post: (url, request) => callsOf(cluster, answer).post(url, request),
        podFile: (name) => pod[name],
      },
    });
    await at.ask('POST sys/auth/kubernetes', { body: { type: 'kubernetes' } });
  });
  afterEach(() => at.close());

  const configure = (body: object = config): Promise<Answer> => at.ask('POST auth/kubernetes/config', { body });
  const writeRole = (body: object = role): Promise<Answer> => at.ask('POST auth/kubernetes/role/web', { body });
  const login = (jwt: unknown, more: object = {}, headers = {}): Promise<Answer> =>
    at.ask('POST auth/kubernetes/login', { token: null, body: { role: 'web', jwt, ...more }, headers });
  const ends = ({ status, body }: Answer): readonly [number, string] => [status, (body.errors ?? []).join()];

  describe('the configuration', () => {
    it('is read without the token of the reviewer', async () => {
      expect((await configure({ ...config, pem_keys: [pem] })).status).to.equal(204);
      const read = await at.ask('GET auth/kubernetes/config');
      expect(read.body.data).to.deep.equal({
        kubernetes_host: 'https://api.example',
        kubernetes_ca_cert: ca,
        token_reviewer_jwt_set: true,
        disable_local_ca_jwt: false,
        pem_keys: [pem],
        issuer: '',
        disable_iss_validation: true,
        use_annotations_as_alias_metadata: false,
      });
      expect(read.text).not.to.contain(reviewer);
    });

    it('is replaced as a whole by each write, and missing before the first', async () => {
      expect((await at.ask('GET auth/kubernetes/config')).status).to.equal(404);
      await configure({ ...config, pem_keys: pem, issuer: 'x', disable_iss_validation: false });
      expect((await configure({ kubernetes_host: 'api.example:6443', disable_local_ca_jwt: 'true' })).status).to.equal(204);
      expect((await at.ask('GET auth/kubernetes/config')).body.data).to.deep.include({
        kubernetes_host: 'api.example:6443',
        kubernetes_ca_cert: '',
        token_reviewer_jwt_set: false,
        disable_local_ca_jwt: true,
        pem_keys: [],
        issuer: '',
        disable_iss_validation: true,
      });
    });

    const privatePem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' });
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ type: 'spki', format: 'pem' });
    const edwards = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' });
    const badKey = 'data does not contain any valid RSA or ECDSA public keys';
    for (const [what, body, says] of [
      ['no host', { kubernetes_host: '' }, 'no host provided'],
      ['a host that is no text', { kubernetes_host: ['a'] }, 'expected a string'],
      ['another scheme', { kubernetes_host: 'ftp://api.example' }, 'kubernetes_host must be'],
      ['a plain host far away', { kubernetes_host: 'http://api.example' }, 'http only on loopback'],
      ['a host that only begins like loopback', { kubernetes_host: 'http://127.0.0.1.example' }, 'http only on loopback'],
      ['a user in the URL', { kubernetes_host: 'https://u:p@api.example' }, 'kubernetes_host must be'],
      ['a query in the URL', { kubernetes_host: 'https://api.example/?a=b' }, 'kubernetes_host must be'],
      ['a host with a space', { kubernetes_host: 'api example' }, 'kubernetes_host must be'],
      ['authorities that are no PEM', { kubernetes_ca_cert: 'x' }, 'kubernetes_ca_cert must be certificates'],
      ['a damaged authority', { kubernetes_ca_cert: ca.replace('MII', 'MIX') }, 'kubernetes_ca_cert must be certificates'],
      ['a reviewer with a line break', { token_reviewer_jwt: 'a\r\nx: y' }, 'token_reviewer_jwt must be a token'],
      ['a key that is no PEM', { pem_keys: 'bad' }, badKey],
      ['a private key', { pem_keys: [privatePem] }, badKey],
      ['a short RSA key', { pem_keys: [small] }, badKey],
      ['a key of Ed25519', { pem_keys: [edwards] }, badKey],
      ['a second key that is bad', { pem_keys: [pem, 'x'] }, badKey],
      ['too many keys', { pem_keys: Array(17).fill(pem) }, 'pem_keys must have at most 16 keys'],
      ['keys that are no texts', { pem_keys: [1] }, 'expected a list of strings'],
      ['no authorities outside of a pod', { kubernetes_ca_cert: '' }, 'kubernetes_ca_cert must be set'],
      ['annotations', { use_annotations_as_alias_metadata: true }, 'use_annotations_as_alias_metadata is not supported'],
    ] as const)
      it(`is refused with ${what}, and the one before it stays`, async () => {
        await configure();
        const refused = await configure({ ...config, ...body });
        expect(ends(refused)[0], refused.text).to.equal(400);
        expect(ends(refused)[1]).to.contain(says);
        expect((await at.ask('GET auth/kubernetes/config')).body.data).to.include({ kubernetes_host: 'https://api.example' });
      });

    for (const [host, url] of [
      ['https://api.example', 'https://api.example'],
      ['https://api.example:6443/', 'https://api.example:6443'],
      ['https://proxy.example/k8s/clusters/c-1/', 'https://proxy.example/k8s/clusters/c-1'],
      ['api.example', 'https://api.example'],
      ['10.0.0.1:6443', 'https://10.0.0.1:6443'],
      ['[2001:db8::1]:6443', 'https://[2001:db8::1]:6443'],
      ['http://127.0.0.1:8001', 'http://127.0.0.1:8001'],
      ['http://localhost:8001', 'http://localhost:8001'],
      ['http://[::1]:8001', 'http://[::1]:8001'],
    ] as const)
      it(`with the host ${host} asks at ${url}`, async () => {
        expect((await configure({ ...config, kubernetes_host: host })).status).to.equal(204);
        await writeRole();
        expect((await login(await cluster.issue())).status).to.equal(200);
        expect(cluster.asked.map((one) => one.url)).to.deep.equal([`${url}/apis/authentication.k8s.io/v1/tokenreviews`]);
      });

    const ofPod = { 'ca.crt': 'authority of the pod', token: 'token-of-the-pod\n' };
    for (const [what, files, body, sent] of [
      ['its own token and authority', ofPod, {}, { ca, token: reviewer }],
      ['the token of the pod', ofPod, { token_reviewer_jwt: '' }, { ca, token: 'token-of-the-pod' }],
      ['the authority of the pod', ofPod, { kubernetes_ca_cert: '' }, { ca: 'authority of the pod', token: reviewer }],
      ['the token of the login, in no pod', {}, { token_reviewer_jwt: '' }, { ca, token: 'its own' }],
      [
        'nothing of the pod if that is disabled',
        ofPod,
        { kubernetes_ca_cert: '', token_reviewer_jwt: '', disable_local_ca_jwt: true },
        { ca: '', token: 'its own' },
      ],
      [
        'no authority on loopback',
        {},
        { kubernetes_host: 'http://127.0.0.1:1', kubernetes_ca_cert: '' },
        { ca: '', token: reviewer },
      ],
    ] as const)
      it(`lets a review use ${what}`, async () => {
        pod = files;
        expect((await configure({ ...config, ...body })).status).to.equal(204);
        await writeRole();
        const token = await cluster.issue();
        for (const one of [token, 'token-of-the-pod']) cluster.reviewers.add(one);
        expect((await login(token)).status).to.equal(200);
        const [asked] = cluster.asked;
        expect({ ca: asked?.ca, token: asked?.token === token ? 'its own' : asked?.token }).to.deep.equal(sent);
      });

    it('reads the files of the pod again for each review', async () => {
      pod = { 'ca.crt': 'one', token: 'first' };
      await configure({ kubernetes_host: 'api.example' });
      await writeRole();
      const jwt = await cluster.issue();
      await login(jwt);
      pod = { 'ca.crt': 'two', token: 'second' };
      await login(jwt);
      expect(cluster.asked.map(({ ca: sent, token }) => [sent, token])).to.deep.equal([
        ['one', 'first'],
        ['two', 'second'],
      ]);
      pod = {};
      expect(ends(await login(jwt))).to.deep.equal([
        503,
        'the Kubernetes API server did not review the token: this node runs in no pod with a service account; set kubernetes_ca_cert',
      ]);
    });
  });

  describe('a role', () => {
    it('is read as it was written', async () => {
      const body = { ...role, bound_service_account_names: 'web, api-*', token_ttl: '20m', policies: 'shop' };
      expect((await writeRole(body)).status).to.equal(204);
      expect((await at.ask('GET auth/kubernetes/role/WEB')).body.data).to.deep.include({
        bound_service_account_names: ['web', 'api-*'],
        bound_service_account_namespaces: ['shop'],
        bound_service_account_namespace_selector: '',
        audience: 'transitd',
        alias_name_source: 'serviceaccount_uid',
        token_ttl: 1200,
        token_policies: ['shop'],
      });
      expect((await at.ask('GET auth/kubernetes/role?list=true')).body.data.keys).to.deep.equal(['web']);
      await writeRole({ token_ttl: 60, bound_service_account_namespace_selector: '', alias_name_source: '' });
      expect((await at.ask('GET auth/kubernetes/role/web')).body.data).to.deep.include({ audience: 'transitd', token_ttl: 60 });
      expect((await at.ask('DELETE auth/kubernetes/role/web')).status).to.equal(204);
      expect((await at.ask('GET auth/kubernetes/role/web')).status).to.equal(404);
    });

    it('without an audience is written with a warning, and shows none', async () => {
      const { status, body } = await writeRole({ ...role, audience: '' });
      expect([status, body.warnings]).to.deep.equal([
        200,
        ['this role has no audience: it accepts tokens that were made for other services'],
      ]);
      expect((await at.ask('GET auth/kubernetes/role/web')).body.data).not.to.have.property('audience');
    });

    it('keeps the source of the alias, which has no effect, with a warning', async () => {
      const { body } = await writeRole({ ...role, alias_name_source: 'serviceaccount_name' });
      expect(body.warnings).to.deep.equal(['These parameters have no effect here: [alias_name_source]']);
      const read = await at.ask('GET auth/kubernetes/role/web');
      expect(read.body.data).to.include({ alias_name_source: 'serviceaccount_name' });
    });

    for (const [body, says] of [
      [{ bound_service_account_names: '' }, '"bound_service_account_names" can not be empty'],
      [{ bound_service_account_namespaces: [] }, '"bound_service_account_namespaces" can not be empty'],
      [{ bound_service_account_names: ['*', 'web'] }, 'can not mix "*" with values'],
      [{ bound_service_account_namespaces: 'shop,*' }, 'can not mix "*" with values'],
      [{ alias_name_source: 'secret' }, 'alias_name_source must be one of serviceaccount_uid, serviceaccount_name'],
      [{ policies: 'root' }, 'root'],
    ] as const)
      it(`is refused with ${JSON.stringify(body)}`, async () => {
        const refused = await writeRole({ ...role, ...body });
        expect(ends(refused)[0], refused.text).to.equal(400);
        expect(ends(refused)[1]).to.contain(says);
      });
  });

  describe('a login', () => {
    beforeEach(async () => {
      await configure();
      await writeRole({ ...role, policies: 'shop' });
    });

    it('issues a token that names the account', async () => {
      const jwt = await cluster.issue();
      const answer = await login(`${jwt}\n`, { role: 'Web' });
      const metadata = {
        role: 'web',
        service_account_name: 'web',
        service_account_namespace: 'shop',
        service_account_secret_name: '',
        service_account_uid: '7d2c',
      };
      expectLogin(answer, { policies: ['default', 'shop'], metadata });
      const self = await at.ask('GET auth/token/lookup-self', { token: answer.body.auth.client_token });
      expect(self.body.data).to.deep.include({ display_name: 'kubernetes-shop-web', meta: metadata });
      const spec = { token: jwt, audiences: ['transitd'] };
      expect(cluster.asked.map((one) => one.body)).to.deep.equal([
        { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec },
      ]);
    });

    it('accepts a token that a Secret holds, which has other claims, no times and no audience', async () => {
      await writeRole({ audience: '' });
      const prefix = 'kubernetes.io/serviceaccount';
      const old = { exp: undefined, nbf: undefined, iat: undefined, aud: undefined, 'kubernetes.io': undefined };
      const jwt = await cluster.issue({
        ...old,
        [`${prefix}/namespace`]: 'shop',
        [`${prefix}/secret.name`]: 'web-token-x',
        [`${prefix}/service-account.name`]: 'web',
        [`${prefix}/service-account.uid`]: '7d2c',
      });
      const { body } = await login(jwt);
      expect(body.auth.metadata).to.include({ service_account_name: 'web', service_account_secret_name: 'web-token-x' });
      expect(cluster.asked[0]?.body).to.deep.include({ spec: { token: jwt } });
    });

    it('without an audience in the role asks for those of the token', async () => {
      await writeRole({ audience: '' });
      const jwt = await cluster.issue({ aud: ['a', 'b'] }, { audiences: ['b'] });
      expect((await login(jwt)).status).to.equal(200);
      expect(cluster.asked[0]?.body).to.deep.include({ spec: { token: jwt, audiences: ['a', 'b'] } });
    });

    for (const [bound, name, namespace, says] of [
      [{ bound_service_account_names: 'api,web' }, 'web', 'shop', ''],
      [{ bound_service_account_names: 'w*b' }, 'web', 'shop', ''],
      [{ bound_service_account_names: '*', bound_service_account_namespaces: '*' }, 'any', 'other', ''],
      [{ bound_service_account_namespaces: 'shop-*' }, 'web', 'shop-eu', ''],
      [{ bound_service_account_namespaces: 'shop-*' }, 'web', 'shop', 'namespace not authorized'],
      [{}, 'web', 'shop2', 'namespace not authorized'],
      [{}, 'web', 'eshop', 'namespace not authorized'],
      [{}, 'webb', 'shop', 'service account name not authorized'],
      [{ bound_service_account_names: 'we' }, 'web', 'shop', 'service account name not authorized'],
    ] as const)
      it(`of ${name} in ${namespace} with ${JSON.stringify(bound)} ${says === '' ? 'passes' : `is refused: ${says}`}`, async () => {
        await writeRole({ ...role, ...bound });
        const ofPod = { namespace, serviceaccount: { name, uid: '1' } };
        const account = { username: `system:serviceaccount:${namespace}:${name}`, uid: '1' };
        const jwt = await cluster.issue({ 'kubernetes.io': ofPod }, account);
        expect(ends(await login(jwt))).to.deep.equal(says === '' ? [200, ''] : [403, says]);
        expect(cluster.asked).to.have.length(says === '' ? 1 : 0);
      });

    const nowS = Math.floor(Date.now() / 1000);
    const wrong = (claim: string) => [403, `the token is refused: its claim "${claim}" is not the expected one`] as const;
    const account = (serviceaccount: unknown, namespace: unknown = 'shop') => ({
      'kubernetes.io': { namespace, serviceaccount },
    });
    const nobody = [403, 'the token is refused: it names no service account'] as const;
    for (const [what, claims, end] of [
      ['an audience of another service', { aud: ['other'] }, wrong('aud')],
      ['no audience', { aud: undefined }, wrong('aud')],
      ['an audience that is no text', { aud: [7] }, wrong('aud')],
      ['a past expiry', { exp: nowS - 120 }, wrong('exp')],
      ['an expiry that is a text', { exp: `${nowS + 600}` }, wrong('exp')],
      ['a future begin', { nbf: nowS + 600 }, wrong('nbf')],
      ['a future time of issue', { iat: nowS + 600 }, wrong('iat')],
      ['no account', { 'kubernetes.io': undefined }, nobody],
      ['an account that is a text', { 'kubernetes.io': 'web' }, nobody],
      ['an account without a name', account({ uid: '7d2c' }), nobody],
      ['a namespace of another form', account({ name: 'web', uid: '7d2c' }, ['shop']), nobody],
      ['a name that holds a namespace', account({ name: 'web:shop', uid: '7d2c' }), nobody],
      ['an account without a UID', account({ name: 'web' }), [403, 'could not parse UID from claims']],
      ['the UID of an earlier account', account({ name: 'web', uid: '7d2b' }), denied],
    ] as const)
      it(`is refused with ${what}`, async () => {
        expect(ends(await login(await cluster.issue(claims)))).to.deep.equal(end);
      });

    it('tolerates a minute of difference between the clocks', async () => {
      const claims = { nbf: nowS + 30, iat: nowS + 30, exp: Math.floor(Date.now() / 1000) - 20 };
      expect((await login(await cluster.issue(claims))).status).to.equal(200);
    });

    const part = (text: string): string => base64url.encode(text);
    const [head, body] = [`{"alg":"ES256"}`, JSON.stringify({ ...web, exp: nowS + 600 })];
    const refused = (why: string) => [403, `the token is refused: ${why}`] as const;
    const noJwt = refused('it is not a signed JWT');
    const badAlgorithm = refused('its algorithm is not supported');
    const twice = refused('an object in it has a member twice');
    for (const [what, jwt, end] of [
      ['no role', 'x', [400, 'missing role']],
      ['no token', '', [400, 'missing jwt']],
      ['a text', 'nonsense', noJwt],
      ['two parts', `${part(head)}.${part(body)}`, noJwt],
      ['an empty signature', `${part(head)}.${part(body)}.`, noJwt],
      ['no algorithm', new UnsecuredJWT({ ...web }).encode(), noJwt],
      ['no algorithm, but a signature', `${part('{"alg":"none"}')}.${part(body)}.AAAA`, badAlgorithm],
      ['a symmetric algorithm', `${part('{"alg":"HS256"}')}.${part(body)}.AAAA`, badAlgorithm],
      ['a header that is a list', `${part('[]')}.${part(body)}.AAAA`, noJwt],
      ['claims that are no JSON', `${part(head)}.${part('{')}.AAAA`, noJwt],
      ['claims that are not UTF-8', `${part(head)}.${base64url.encode(Buffer.from([0x22, 0xff, 0x22]))}.AAAA`, noJwt],
      ['claims that are null', `${part(head)}.${part('null')}.AAAA`, noJwt],
      ['a claim twice', `${part(head)}.${part(body.replace('{', '{"aud":["other"],'))}.AAAA`, twice],
      ['a claim twice, once with an escape', `${part(head)}.${part(body.replace('{', '{"a\\u0075d":["other"],'))}.AAAA`, twice],
      ['an inner member twice', `${part(head)}.${part(body.replace('"name":"web"', '"name":"root","name":"web"'))}.AAAA`, twice],
      [
        'deep claims',
        `${part(head)}.${part(`{"a":${'['.repeat(20)}${']'.repeat(20)}}`)}.AAAA`,
        refused('it has more than 8 levels of nesting'),
      ],
      ['a huge token', `${part(head)}.${part(body)}.${'A'.repeat(20_000)}`, refused('it is longer than 16384 characters')],
      ['a line break', `${part(head)}.${part(body)}.AA\r\nx`, noJwt],
    ] as const)
      it(`is refused without a review with ${what}`, async () => {
        expect(ends(await login(jwt, what === 'no role' ? { role: '' } : {}))).to.deep.equal(end);
        expect(cluster.asked).to.deep.equal([]);
      });

    it('does not take a colon or a quote inside of a text for a second member', async () => {
      expect((await login(await cluster.issue({ note: 'a:"b":\\' }))).status).to.equal(200);
    });

    for (const [given, says] of [
      ['other', 'invalid role name "other"'],
      ['a b', 'invalid role name'],
      ['x'.repeat(60), 'invalid role name'],
    ] as const)
      it(`is refused for the unknown role ${given}`, async () => {
        expect(ends(await login(await cluster.issue(), { role: given }))).to.deep.equal([400, says]);
      });

    it('is refused before the method is configured', async () => {
      await at.ask('POST sys/auth/k2', { body: { type: 'kubernetes' } });
      await at.ask('POST auth/k2/role/web', { body: role });
      const answered = await at.ask('POST auth/k2/login', { token: null, body: { role: 'web', jwt: await cluster.issue() } });
      expect(ends(answered)).to.deep.equal([400, 'could not load backend configuration']);
    });

    it('is refused from another address as one that the cluster does not know, without a review', async () => {
      await writeRole({ ...role, token_bound_cidrs: '10.0.0.0/8' });
      const jwt = await cluster.issue();
      expect(ends(await login(jwt, {}, { 'X-Forwarded-For': '192.0.2.1' }))).to.deep.equal(denied);
      expect(cluster.asked).to.deep.equal([]);
      expect((await login(jwt, {}, { 'X-Forwarded-For': '10.1.1.1' })).status).to.equal(200);
    });

    it('is refused for a token that the cluster did not issue, or no longer accepts', async () => {
      expect(ends(await login(await tokenOf({}, stranger.privateKey)))).to.deep.equal(denied);
      const jwt = await cluster.issue();
      expect((await login(jwt)).status).to.equal(200);
      cluster.accounts.delete(jwt);
      expect(ends(await login(jwt))).to.deep.equal(denied);
    });

    const good = { authenticated: true, user: { username: reviewed.username, uid: '7d2c' }, audiences: ['transitd'] };
    const review = (status: unknown) => ({ status: 201, json: { kind: 'TokenReview', status } });
    const unavailable = (why: string) => [503, `the Kubernetes API server did not review the token: ${why}`] as const;
    const notAllowed = (status: number) =>
      [403, `permission denied: the Kubernetes API server refused the review with status ${status}`] as const;
    for (const [what, given, end] of [
      ['confirms it', review(good), [200, '']],
      ['confirms it with 200', { ...review(good), status: 200 }, [200, '']],
      ['does not authenticate it', review({ ...good, authenticated: false }), denied],
      ['says "true" as a text', review({ ...good, authenticated: 'true' }), denied],
      ['reports an error too', review({ ...good, error: 'token lookup failed' }), denied],
      ['names another account', review({ ...good, user: { ...good.user, username: 'system:serviceaccount:shop:api' } }), denied],
      ['names another namespace', review({ ...good, user: { ...good.user, username: 'system:serviceaccount:x:web' } }), denied],
      ['names a person', review({ ...good, user: { ...good.user, username: 'web' } }), denied],
      ['names another UID', review({ ...good, user: { ...good.user, uid: '7d2d' } }), denied],
      ['names no UID', review({ ...good, user: { username: reviewed.username } }), denied],
      ['names nobody', review({ ...good, user: null }), denied],
      ['confirms another audience', review({ ...good, audiences: ['other'] }), denied],
      ['confirms no audience', review({ ...good, audiences: undefined }), denied],
      ['has no status', { status: 201, json: {} }, denied],
      ['answers a list', { status: 201, json: [] }, denied],
      ['answers no JSON', { status: 200, json: undefined }, unavailable('its answer is not JSON')],
      ['does not know the reviewer', failed(401), notAllowed(401)],
      ['forbids the reviewer', failed(403), notAllowed(403)],
      ['redirects', failed(302), unavailable('it answered with status 302')],
      ['has no such API', failed(404), unavailable('it answered with status 404')],
      ['is overloaded', failed(429), unavailable('it answered with status 429')],
      ['fails', failed(500), unavailable('it answered with status 500')],
    ] as const)
      it(`ends with ${end[0]} if the API server ${what}`, async () => {
        answer = () => given;
        const answered = await login(await cluster.issue());
        expect(ends(answered)).to.deep.equal(end);
        if (end[0] === 503) expect(answered.headers.get('retry-after')).to.equal('1');
      });

    it('is refused for now if the API server cannot be reached, without its address', async () => {
      answer = () => {
        throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:443'), { code: 'ECONNREFUSED' });
      };
      expect(ends(await login(await cluster.issue()))).to.deep.equal(unavailable('ECONNREFUSED'));
    });

    it('issues no token if the role, the configuration or the method changes during the review', async () => {
      for (const change of [
        () => writeRole({ token_ttl: 60 }),
        () => configure({ ...config, issuer: 'x' }),
        () => at.ask('DELETE sys/auth/kubernetes'),
      ]) {
        answer = async (...asked) => {
          expect((await change()).status).to.equal(204);
          return cluster.review(...asked);
        };
        expect((await login(await cluster.issue())).status).to.be.oneOf([404, 503]);
      }
    });

    for (const [callers, addressOf, places] of [
      ['many addresses', (index: number) => `10.0.0.${index}`, 16],
      ['one address', () => '10.0.0.1', 8],
    ] as const)
      it(`waits for a slow API server only with ${places - 1} others from ${callers}, and stops no other callers`, async () => {
        await at.ask('POST sys/auth/k2', { body: { type: 'kubernetes' } });
        await at.ask('POST auth/k2/config', { body: { ...config, kubernetes_host: 'https://fast.example' } });
        await at.ask('POST auth/k2/role/web', { body: role });
        const jwt = await cluster.issue();
        const { promise: released, resolve: release } = Promise.withResolvers<void>();
        answer = async (...asked) => {
          if (cluster.asked.at(-1)?.url.includes('api.example') === true) await released;
          return cluster.review(...asked);
        };
        const slow = Array.from({ length: 20 }, (_, index) => login(jwt, {}, { 'X-Forwarded-For': addressOf(index) }));
        const first = await Promise.race(slow);
        expect(ends(first)).to.deep.equal([503, 'too many logins wait for the Kubernetes API server']);
        const body = { role: 'web', jwt };
        const headers = { 'X-Forwarded-For': addressOf(1) };
        expect((await at.ask('POST auth/k2/login', { token: null, body, headers })).status, 'another method').to.equal(200);
        const other = places === 8 ? login(jwt, {}, { 'X-Forwarded-For': '10.0.1.1' }) : undefined;
        if (other) while (cluster.asked.length < places + 2) await new Promise(setImmediate);
        release();
        const ended = (await Promise.all(slow)).map(({ status }) => status);
        expect(ended.filter((status) => status === 200)).to.have.length(places);
        expect((await other)?.status ?? 200, 'another caller').to.equal(200);
        expect((await login(jwt)).status, 'the places are free again').to.equal(200);
      });
  });

  describe('a login with keys in the configuration', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const rsaPem = String(rsa.publicKey.export({ type: 'spki', format: 'pem' }));

    it('needs the signature of one of them before the review', async () => {
      await writeRole();
      await configure({ ...config, pem_keys: [rsaPem, pem] });
      const jwt = await cluster.issue();
      expect((await login(jwt)).status).to.equal(200);
      const forged = await tokenOf({}, stranger.privateKey);
      cluster.accounts.set(forged, reviewed);
      const [header = '', claims = ''] = jwt.split('.');
      const symmetric = await new SignJWT({ ...web }).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(pem));
      for (const [bad, text] of [
        [forged, 'permission denied'],
        [`${header}.${claims}.${forged.split('.')[2]}`, 'permission denied'],
        [`${base64url.encode('{"alg":"RS256"}')}.${claims}.${jwt.split('.')[2]}`, 'permission denied'],
        [`${base64url.encode('{"alg":"ES256","crit":["x"],"x":1}')}.${claims}.AAAA`, 'permission denied'],
        [symmetric, 'the token is refused: its algorithm is not supported'],
      ] as const)
        expect(ends(await login(bad)), bad).to.deep.equal([403, text]);
      expect(cluster.asked, 'only the good one').to.have.length(1);
    });

    it('takes the public key of a certificate, and RSA keys with either padding', async () => {
      await writeRole();
      await configure({ ...config, pem_keys: [ca, rsaPem] });
      for (const alg of ['RS256', 'PS512']) {
        const jwt = await new SignJWT({ ...web }).setProtectedHeader({ alg }).sign(rsa.privateKey);
        cluster.accounts.set(jwt, reviewed);
        expect((await login(jwt)).status, alg).to.equal(200);
      }
      const key = readFileSync(join(folder, 'cluster.key'));
      const jwt = await new SignJWT({ ...web }).setProtectedHeader({ alg: 'ES256' }).sign(createPrivateKey(key));
      cluster.accounts.set(jwt, reviewed);
      expect((await login(jwt)).status, 'the certificate').to.equal(200);
    });

    for (const [settings, iss, end] of [
      [{ disable_iss_validation: true, issuer: 'https://a' }, 'https://b', 200],
      [{ disable_iss_validation: false, issuer: 'https://a' }, 'https://a', 200],
      [{ disable_iss_validation: false, issuer: 'https://a' }, 'https://b', 403],
      [{ disable_iss_validation: false }, 'kubernetes/serviceaccount', 200],
      [{ disable_iss_validation: false }, 'https://cluster', 403],
      [{ disable_iss_validation: false }, undefined, 403],
    ] as const)
      it(`of the issuer ${iss} ends with ${end} with ${JSON.stringify(settings)}`, async () => {
        await configure({ ...config, ...settings });
        await writeRole();
        expect((await login(await cluster.issue({ iss }))).status).to.equal(end);
      });
  });
});
