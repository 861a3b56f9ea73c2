// @live
import type { AuditDevices } from '@transitd/audit';
import { expect } from 'chai';
import { exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { MemoryDevices } from '../memory-devices.ts';
import { type Ask, type Served, served } from '../served.ts';
import { callsOf, clusterKeyPem, StubApiServer, tokenOf } from './stub-api-server.ts';

const [pair, stranger] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')];
const near = '10.1.1.1';
const far = '192.0.2.1';
const block = ['10.0.0.0/8'];

describe('the audit entry of a refused login', () => {
  let devices: MemoryDevices;
  let at: Served;
  let ask: Ask;
  let cluster: StubApiServer;
  beforeEach(async () => {
    devices = new MemoryDevices();
    cluster = new StubApiServer();
    const audit = devices as unknown as AuditDevices;
    at = await served({ audit, trustedProxies: ['127.0.0.0/8'], kubernetes: callsOf(cluster) });
    ask = at.ask;
  });
  afterEach(() => at.close());

  const enable = (type: string) => ask(`POST sys/auth/${type}`, { body: { type } });
  const hashOf = async (input: string): Promise<string> =>
    (await ask('POST sys/audit-hash/main', { body: { input } })).body.data.hash;

  /** Logs in, and returns the whole answer to the caller and what the audit says of it. */
  async function login(line: string, body: object, from = near) {
    const { status, text } = await ask(`POST ${line}`, { token: null, body, headers: { 'X-Forwarded-For': from } });
    const { answered } = devices.pair;
    expect(answered.response.status).to.equal(status);
    return { answer: `${status} ${text}`, ...(answered.refused_by && { by: answered.refused_by }) };
  }
  const refused = (answer: string, constraint: string, given?: readonly string[]) => ({
    answer,
    by: { constraint, ...(given && { given }) },
  });

  it('of userpass says whether the name, the password, the address or a lock-out refused it; the caller learns nothing', async () => {
    const wrong = '400 {"errors":["invalid username or password"]}\n';
    await enable('userpass');
    await ask('POST auth/userpass/users/ann', { body: { password: 'right', token_bound_cidrs: block } });
    const enter = (name: string, password: string, from?: string) => login(`auth/userpass/login/${name}`, { password }, from);
    expect(await enter('nobody', 'right')).to.deep.equal(refused(wrong, 'username'));
    expect(await enter('ann', 'wrong')).to.deep.equal(refused(wrong, 'password'));
    expect(await enter('ann', 'wrong', far)).to.deep.equal(refused(wrong, 'password'));
    expect(await enter('ann', 'right', far)).to.deep.equal(refused(wrong, 'token_bound_cidrs'));
    expect(await enter('ann', 'right')).to.not.have.property('by');
    for (let failures = 0; failures < 5; failures++) await enter('ann', 'wrong');
    expect(await enter('ann', 'right')).to.deep.equal(refused('403 {"errors":["permission denied"]}\n', 'user_lockout'));
  });

  it('of approle says which id or which list of addresses refused it; the caller learns nothing', async () => {
    const [wrong, missing] = ['400 {"errors":["invalid role or secret ID"]}\n', '400 {"errors":["missing secret_id"]}\n'];
    await enable('approle');
    const role = async (name: string, settings: object) => {
      await ask(`POST auth/approle/role/${name}`, { body: settings });
      const { role_id } = (await ask(`GET auth/approle/role/${name}/role-id`)).body.data;
      const secret = async (of: object) =>
        (await ask(`POST auth/approle/role/${name}/secret-id`, { body: of })).body.data.secret_id;
      return { role_id, secret };
    };
    const enter = (body: object, from?: string) => login('auth/approle/login', body, from);
    const open = await role('open', {});
    const { role_id } = open;
    const secret_id = await open.secret({});
    expect(await enter({ role_id, secret_id })).to.not.have.property('by');
    expect(await enter({})).to.deep.equal(refused('400 {"errors":["missing role_id"]}\n', 'role_id'));
    for (const other of ['unknown', 'x'.repeat(5000)])
      expect(await enter({ role_id: other, secret_id })).to.deep.equal(refused(wrong, 'role_id'));
    expect(await enter({ role_id: 'unknown' })).to.deep.equal(refused(missing, 'role_id'));
    for (const other of ['unknown', 'x'.repeat(5000)])
      expect(await enter({ role_id, secret_id: other })).to.deep.equal(refused(wrong, 'secret_id'));
    expect(await enter({ role_id })).to.deep.equal(refused(missing, 'secret_id'));
    const once = await open.secret({ num_uses: 1 });
    await enter({ role_id, secret_id: once });
    expect(await enter({ role_id, secret_id: once })).to.deep.equal(refused(wrong, 'secret_id'));

    for (const [settings, ofSecret, constraint] of [
      [{ secret_id_bound_cidrs: block }, {}, 'secret_id_bound_cidrs'],
      [{ token_bound_cidrs: block }, {}, 'token_bound_cidrs'],
      [{}, { cidr_list: block }, 'cidr_list'],
      [{}, { token_bound_cidrs: block }, 'token_bound_cidrs'],
    ] as const) {
      const bound = await role('bound', { secret_id_bound_cidrs: [], token_bound_cidrs: [], ...settings });
      const ids = { role_id: bound.role_id, secret_id: await bound.secret(ofSecret) };
      expect(await enter(ids)).to.not.have.property('by');
      expect(await enter(ids, far)).to.deep.equal(refused(wrong, constraint));
    }
  });

  it('of jwt says which claim refused it, with hashes of its values; the caller learns as little as before', async () => {
    await enable('jwt');
    const config = { jwt_validation_pubkeys: [await exportSPKI(pair.publicKey)], bound_issuer: 'https://issuer' };
    await ask('POST auth/jwt/config', { body: { ...config, jwt_supported_algs: 'ES256' } });
    await ask('POST auth/jwt/role/ci', {
      body: {
        ...{ user_claim: 'user', bound_audiences: 'transitd', bound_subject: 'a-subject', token_bound_cidrs: block },
        bound_claims: { groups: ['builders'], level: [7], '/run/branch': ['main'] },
        ...{ groups_claim: 'teams', max_age: '10m' },
      },
    });
    const now = Math.floor(Date.now() / 1000);
    const good = { iss: 'https://issuer', aud: 'transitd', sub: 'a-subject', exp: now + 600, user: 'a-user' };
    const bound = { groups: ['builders'], level: 7, run: { branch: 'main' }, teams: ['a-team'], auth_time: now };
    const signed = (claims: object, key = pair.privateKey) =>
      new SignJWT({ ...good, ...bound, ...claims }).setProtectedHeader({ alg: 'ES256' }).sign(key);
    const enter = async (jwt: string, { role = 'ci', from = near } = {}) => login('auth/jwt/login', { role, jwt }, from);
    expect(await enter(await signed({}))).to.not.have.property('by');

    const answer = (why: string) => `400 ${JSON.stringify({ errors: [`the token is refused: ${why}`] })}\n`;
    const unexpected = (claim: string) => answer(`ERR_JWT_CLAIM_VALIDATION_FAILED, its claim "${claim}" is not the expected one`);
    const missing = (claim: string) => answer(`ERR_JWT_CLAIM_VALIDATION_FAILED, its claim "${claim}" is missing`);
    const unbound = (claim: string) => answer(`its claim "${claim}" does not match the role`);
    const tooOld = answer('its claim "auth_time" is missing, or longer ago than max_age');
    const notUser = answer('its claim "user" does not name a user');
    const many = Array.from({ length: 100 }, (_, n) => `group-${n}`);
    for (const [claims, said, constraint, given] of [
      [{ iss: 'https://other' }, unexpected('iss'), 'bound_issuer', ['https://other']],
      [{ aud: ['other', 'more'] }, unexpected('aud'), 'bound_audiences', ['other', 'more']],
      [{ aud: undefined }, missing('aud'), 'bound_audiences', undefined],
      [{ sub: 'somebody-else' }, unexpected('sub'), 'bound_subject', ['somebody-else']],
      [{ exp: undefined }, missing('exp'), 'exp', undefined],
      [{ nbf: now + 6000 }, unexpected('nbf'), 'nbf', [String(now + 6000)]],
      [{ iat: now + 6000 }, answer('its claim "iat" is in the future'), 'iat', [String(now + 6000)]],
      [{ user: undefined }, notUser, 'user_claim', undefined],
      [{ user: { of: 'an-object' } }, notUser, 'user_claim', ['{"of":"an-object"}']],
      [{ groups: ['strangers', 'others'] }, unbound('groups'), 'bound_claims.groups', ['strangers', 'others']],
      [{ groups: 'strangers' }, unbound('groups'), 'bound_claims.groups', ['strangers']],
      [{ groups: undefined }, unbound('groups'), 'bound_claims.groups', undefined],
      [{ groups: [] }, unbound('groups'), 'bound_claims.groups', []],
      [{ groups: many }, unbound('groups'), 'bound_claims.groups', many.slice(0, 64)],
      [{ level: 123456789 }, unbound('level'), 'bound_claims.level', ['123456789']],
      [{ run: { branch: 'develop' } }, unbound('/run/branch'), 'bound_claims./run/branch', ['develop']],
      [{ teams: undefined }, answer('its claim "teams" is missing'), 'groups_claim', undefined],
      [
        { teams: { of: 'an-object' } },
        answer('its claim "teams" is not a list of groups'),
        'groups_claim',
        ['{"of":"an-object"}'],
      ],
      [{ auth_time: now - 6000 }, tooOld, 'max_age', [String(now - 6000)]],
    ] as const) {
      const hashes = given && (await Promise.all(given.map(hashOf)));
      devices.lines.length = 0;
      expect(await enter(await signed(claims)), JSON.stringify(claims)).to.deep.equal(refused(said, constraint, hashes));
      for (const value of given ?? []) expect(devices.lines.join('\n')).to.not.include(value);
    }

    const forged = answer('ERR_JWS_SIGNATURE_VERIFICATION_FAILED');
    expect(await enter(await signed({}, stranger.privateKey))).to.deep.equal(refused(forged, 'signature'));
    // From elsewhere, every signed token gets the answer of a forged one.
    expect(await enter(await signed({}), { from: far })).to.deep.equal(refused(forged, 'token_bound_cidrs'));
    expect(await enter(await signed({ aud: 'other' }), { from: far })).to.deep.equal(refused(forged, 'token_bound_cidrs'));
    expect(await enter(await signed({}, stranger.privateKey), { from: far })).to.deep.equal(refused(forged, 'signature'));
    expect(await enter('x.y.z')).to.deep.include({ by: { constraint: 'jwt' } });
    expect(await enter(await signed({}), { role: 'none' })).to.deep.equal(refused('400 {"errors":["unknown role"]}\n', 'role'));
  });

  it('of kubernetes says which claim, setting or review refused it; the caller learns as little as before', async () => {
    await enable('kubernetes');
    const configure = (more: object = {}) =>
      ask('POST auth/kubernetes/config', {
        body: { kubernetes_host: 'http://127.0.0.1:1', token_reviewer_jwt: 'reviewer', issuer: 'https://cluster', ...more },
      });
    await configure({ disable_iss_validation: false, pem_keys: [clusterKeyPem] });
    const accounts = { bound_service_account_names: 'web', bound_service_account_namespaces: 'shop' };
    await ask('POST auth/kubernetes/role/web', { body: { ...accounts, audience: 'transitd', token_bound_cidrs: block } });
    const enter = (jwt: string, { role = 'web', from = near } = {}) => login('auth/kubernetes/login', { role, jwt }, from);
    cluster.reviewers.add('reviewer');
    expect(await enter(await cluster.issue())).to.not.have.property('by');

    const forbidden = '403 {"errors":["permission denied"]}\n';
    const unexpected = (claim: string) =>
      `403 {"errors":["the token is refused: its claim \\"${claim}\\" is not the expected one"]}\n`;
    const account = (namespace: string, name: string) => ({
      'kubernetes.io': { namespace, serviceaccount: { name, uid: '7d2c' } },
    });
    for (const [claims, said, constraint, given] of [
      [{ aud: ['elsewhere'] }, unexpected('aud'), 'audience', 'elsewhere'],
      [{ iss: 'https://other' }, unexpected('iss'), 'issuer', 'https://other'],
      [{ exp: 1_600_000_000 }, unexpected('exp'), 'exp', '1600000000'],
      [
        account('shop', 'stranger'),
        '403 {"errors":["service account name not authorized"]}\n',
        'bound_service_account_names',
        'stranger',
      ],
      [account('market', 'web'), '403 {"errors":["namespace not authorized"]}\n', 'bound_service_account_namespaces', 'market'],
    ] as const) {
      const hash = await hashOf(given);
      devices.lines.length = 0;
      expect(await enter(await cluster.issue(claims))).to.deep.equal(refused(said, constraint, [hash]));
      expect(devices.lines.join('\n')).to.not.include(given);
    }
    expect(await enter(await tokenOf())).to.deep.equal(refused(forbidden, 'token_review'));
    expect(await enter(await tokenOf({}, stranger.privateKey))).to.deep.equal(refused(forbidden, 'signature'));
    expect(await enter(await cluster.issue(), { from: far })).to.deep.equal(refused(forbidden, 'token_bound_cidrs'));
    expect(await enter('x.y.z')).to.deep.include({ by: { constraint: 'jwt' } });
    expect(await enter(await cluster.issue(), { role: 'none' })).to.deep.include({ by: { constraint: 'role' } });
    cluster.reviewers.clear();
    expect(await enter(await cluster.issue())).to.deep.include({ by: { constraint: 'token_reviewer_jwt' } });
  });

  it('of a token says that the token is not valid, or that it is used from elsewhere', async () => {
    const create = async (body: object): Promise<string> =>
      (await ask('POST auth/token/create', { body })).body.auth.client_token;
    const bound = await create({ policies: ['root'] });
    await ask('POST auth/token/roles/near', { body: { token_bound_cidrs: block } });
    const near1 = (await ask('POST auth/token/create/near', { body: {}, headers: { 'X-Forwarded-For': near } })).body.auth
      .client_token;
    await ask('POST auth/token/revoke', { body: { token: bound } });
    for (const [token, constraint] of [
      [null, 'client_token'],
      ['s.nothing', 'client_token'],
      [bound, 'client_token'],
      [near1, 'bound_cidrs'],
    ] as const) {
      const { status, text } = await ask('GET transit/keys/k', { token, headers: { 'X-Forwarded-For': far } });
      expect(`${status} ${text}`).to.equal('403 {"errors":["permission denied"]}\n');
      expect(devices.pair.answered.refused_by).to.deep.equal({ constraint });
    }
    expect((await ask('GET auth/token/lookup-self', { token: near1, headers: { 'X-Forwarded-For': near } })).status).to.equal(
      200,
    );
  });
});
