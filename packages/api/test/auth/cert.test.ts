import { X509Certificate } from 'node:crypto';
import { type ClientCertificate, clientCertificateText } from '@transitd/process';
import { expect } from 'chai';
import { sha256Of, TestAuthority, type TestIdentity } from '../../../cluster/test/test-authority.ts';
import { type Answer, type Served, served } from '../served.ts';
import { expectLogin } from './login-answer.ts';

const header = 'x-transitd-certificate';

describe('the auth method cert', () => {
  let at: Served;
  let authority: TestAuthority;
  let client: TestIdentity;
  before(async () => {
    authority = await TestAuthority.make();
    client = await authority.certify({ subject: 'CN=web, OU=ops, O=Example' });
  });
  beforeEach(async () => {
    at = await served({ forwarded: true }); // the cluster port, on which a member tells the certificate that it has verified
    expect((await at.ask('POST sys/auth/cert', { body: { type: 'cert' } })).status).to.equal(204);
  });
  afterEach(() => at.close());

  const shown = ({ cert }: TestIdentity, { chains, expiresMs = Date.now() + 60_000 }: Partial<ClientCertificate> = {}) => ({
    [header]: clientCertificateText({
      sha256: sha256Of(cert),
      expiresMs,
      der: new X509Certificate(cert).raw,
      chains: chains ?? [[cert, authority.cert].map(sha256Of)],
    }),
  });
  const write = async (name: string, role: object): Promise<Answer> => at.ask(`POST auth/cert/certs/${name}`, { body: role });
  const role = async (name: string, more: object = {}): Promise<void> => {
    const answer = await write(name, { certificate: authority.cert, token_policies: ['user'], ...more });
    expect([answer.status, answer.text]).to.deep.equal([204, '']);
  };
  const login = (headers: Readonly<Record<string, string>>, name?: string): Promise<Answer> =>
    at.ask('POST auth/cert/login', { token: null, headers, body: name === undefined ? {} : { name } });
  const refusalOf = ({ status, body }: Answer): string => `${status} ${body.errors?.join()}`;
  const noCertificate = '400 client certificate must be supplied';
  const noRole = '400 invalid certificate or no client certificate supplied';
  const noMatch = '400 failed to match all constraints for this login certificate';

  it('stores roles and shows them as they were written', async () => {
    const settings = {
      certificate: authority.cert,
      display_name: 'Web',
      allowed_names: ['n*'],
      allowed_common_names: ['web'],
      allowed_dns_sans: ['*.example'],
      allowed_email_sans: ['*@example'],
      allowed_uri_sans: ['spiffe://example/*'],
      allowed_organizational_units: ['ops'],
      token_bound_certificate: true,
      token_ttl: 600,
    };
    await role('Web', { ...settings, allowed_dns_sans: '*.example', token_ttl: '10m' });
    expect((await at.ask('GET auth/cert/certs/web')).body.data)
      .to.include.keys(settings)
      .and.deep.include(settings);
    expect((await at.ask('GET auth/cert/certs?list=true')).body.data).to.deep.equal({ keys: ['web'] });
    expect((await write('web', { display_name: '' })).status).to.equal(204);
    expect((await at.ask('GET auth/cert/certs/web')).body.data).to.deep.include({ ...settings, display_name: '' });
    expect((await at.ask('DELETE auth/cert/certs/web')).status).to.equal(204);
    expect((await at.ask('GET auth/cert/certs/web')).status).to.equal(404);
  });

  it('takes the older names of the initial TTL, the newest first', async () => {
    for (const [settings, ttl] of [
      [{ lease: 90 }, 90],
      [{ lease: 90, ttl: '2m' }, 120],
      [{ lease: 90, ttl: '2m', token_ttl: '3m' }, 180],
      [{}, 180],
    ] as const) {
      expect((await write('web', { certificate: authority.cert, ...settings })).status).to.be.below(300);
      expect((await at.ask('GET auth/cert/certs/web')).body.data)
        .to.include({ token_ttl: ttl })
        .and.not.have.any.keys('ttl', 'lease');
    }
  });

  it('gives a token with what identifies the certificate in its metadata', async () => {
    await role('web', { display_name: 'Web' });
    const answer = await login(shown(client));
    const { body } = answer;
    const { subject_key_id, authority_key_id } = body.auth.metadata;
    for (const id of [subject_key_id, authority_key_id]) expect(id).to.match(/^([0-9a-f]{2}:){19}[0-9a-f]{2}$/);
    const serial_number = BigInt(`0x${new X509Certificate(client.cert).serialNumber}`).toString();
    const metadata = { cert_name: 'web', common_name: 'web', serial_number, subject_key_id, authority_key_id };
    expectLogin(answer, { policies: ['default', 'user'], metadata });
    const { body: looked } = await at.ask('GET auth/token/lookup-self', { token: body.auth.client_token });
    expect(looked.data).to.include({ display_name: 'cert-Web', path: 'auth/cert/login' });
    expect(looked.data).not.to.have.property('bound_certificate');
  });

  it('takes the named role, or the first one that the certificate matches', async () => {
    await role('a', { allowed_common_names: ['other'] });
    await role('b');
    await role('c');
    expect((await login(shown(client))).body.auth.metadata.cert_name).to.equal('b');
    expect((await login(shown(client), 'C')).body.auth.metadata.cert_name).to.equal('c');
    expect(refusalOf(await login(shown(client), 'a'))).to.equal(noMatch);
    expect(refusalOf(await login(shown(client), 'd'))).to.equal(noRole);
  });

  it('lets other requests run while it looks for a role among many', async () => {
    const others = Array.from({ length: 500 }, (_, at) => `${at}`.padStart(100, 'x'));
    for (let at = 0; at < 250; at++) await role(`r${at}`, { allowed_common_names: others });
    let [turns, isOver] = [0, false];
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    expect(refusalOf(await login(shown(client)))).to.equal(noMatch);
    isOver = true;
    expect(turns, 'two without slices').to.be.above(3);
  });

  it('refuses a login without a verified certificate, and believes no header but that of a member', async () => {
    await role('web');
    expect(refusalOf(await login({}))).to.equal(noCertificate);
    for (const text of ['', '.', 'x', `${Date.now() + 9999}.${Buffer.from('x').toString('base64url')}`, '1..'])
      expect(refusalOf(await login({ [header]: text })), text).to.equal(noCertificate);
    const direct = await served();
    await direct.ask('POST sys/auth/cert', { body: { type: 'cert' } });
    await direct.ask('POST auth/cert/certs/web', { body: { certificate: authority.cert } });
    const pem = encodeURIComponent(client.cert);
    for (const headers of [
      shown(client),
      { 'x-transitd-gateway': `secret 0 1 127.0.0.1 ${shown(client)[header]}` },
      { 'x-forwarded-client-cert': pem, 'x-ssl-client-cert': pem, 'ssl-client-verify': 'SUCCESS' },
    ])
      expect(refusalOf(await direct.ask('POST auth/cert/login', { token: null, headers, body: {} }))).to.equal(noCertificate);
    direct.close();
  });

  it('refuses a certificate that has expired since the handshake', async () => {
    await role('web');
    expect(refusalOf(await login(shown(client, { expiresMs: Date.now() - 1 })))).to.match(/^400 invalid certificate: .*expired/);
  });

  it('requires a certificate of the role in every chain that may be the verified one', async () => {
    const [other, middle] = [await TestAuthority.make(), await TestAuthority.make('CN=middle', { parent: authority })];
    await role('web', { certificate: authority.cert });
    const chain = (...all: readonly { readonly cert: string }[]) => [client, ...all].map(({ cert }) => sha256Of(cert));
    for (const [chains, outcome] of [
      [[chain(other)], noRole],
      [[chain(middle)], noRole],
      [[chain(middle, authority)], 'in'],
      [[chain(middle, authority), chain(middle, other)], noRole],
    ] as const) {
      const answer = await login(shown(client, { chains }));
      expect(answer.status === 200 ? 'in' : refusalOf(answer)).to.equal(outcome);
    }
    await role('web', { certificate: authority.cert + other.cert });
    expect((await login(shown(client, { chains: [chain(middle, authority), chain(middle, other)] }))).status).to.equal(200);
    await role('web', { certificate: client.cert });
    expect((await login(shown(client))).status, 'the certificate itself').to.equal(200);
    expect(refusalOf(await login(shown(await authority.certify({ subject: 'CN=web' }))))).to.equal(noRole);
  });

  const patterned: readonly {
    readonly field: string;
    readonly patterns: string | readonly string[];
    readonly matching?: Parameters<TestAuthority['certify']>[0];
    readonly others: readonly Parameters<TestAuthority['certify']>[0][];
  }[] = [
    {
      field: 'allowed_common_names',
      patterns: ['web-*', 'db'],
      matching: { subject: 'CN=web-1' },
      others: [
        { subject: 'CN=web' },
        { subject: 'O=web-1' },
        { subject: 'CN=x', names: [{ type: 'dns', value: 'web-1' }] },
        { subject: 'CN=WEB-1' },
      ],
    },
    {
      field: 'allowed_common_names',
      patterns: 'john',
      matching: { subject: 'DC=example, CN=users, CN=john' },
      others: [{ subject: 'DC=example, CN=john, CN=users' }, { subject: 'CN="x, CN=john"' }, { subject: 'CN="john,"' }],
    },
    {
      field: 'allowed_dns_sans',
      patterns: '*.good.example',
      matching: { names: [{ type: 'dns', value: 'a.good.example' }] },
      others: [
        {},
        { subject: 'CN=a.good.example' },
        { names: [{ type: 'dns', value: 'a.good.example.evil' }] },
        { names: [{ type: 'url', value: 'x://a.good.example' }] },
        { names: [{ type: 'email', value: 'a.good.example' }] },
        { names: [{ type: 'dns', value: 'a.good.example\0.evil' }] },
      ],
    },
    {
      field: 'allowed_dns_sans',
      patterns: 'good',
      matching: { names: [{ type: 'dns', value: 'good' }] },
      others: [
        { names: [{ type: 'dns', value: 'evil, DNS:good' }] },
        { names: [{ type: 'dns', value: '"good"' }] },
        { names: [{ type: 'dns', value: 'good\0evil' }] },
      ],
    },
    {
      field: 'allowed_uri_sans',
      patterns: 'spiffe://example/ns/prod/*',
      matching: { names: [{ type: 'url', value: 'spiffe://example/ns/prod/sa/web' }] },
      others: [
        { names: [{ type: 'url', value: 'spiffe://example.evil/ns/prod/sa/web' }] },
        { names: [{ type: 'url', value: 'spiffe://example/ns/test/sa/web' }] },
        { names: [{ type: 'dns', value: 'spiffe://example/ns/prod/sa/web' }] },
        { names: [{ type: 'url', value: 'x, URI:spiffe://example/ns/prod/sa/web' }] },
      ],
    },
    {
      field: 'allowed_email_sans',
      patterns: '*@good.example',
      matching: { names: [{ type: 'email', value: 'amy@good.example' }] },
      others: [
        { names: [{ type: 'email', value: 'amy@good.example.evil' }] },
        { names: [{ type: 'dns', value: 'amy@good.example' }] },
      ],
    },
    {
      field: 'allowed_organizational_units',
      patterns: 'ops',
      matching: { subject: 'OU=ops, OU=dev, CN=x' },
      others: [{ subject: 'CN=ops' }, { subject: 'OU=dev, CN="OU=ops"' }],
    },
    {
      field: 'allowed_names',
      patterns: 'good',
      matching: { subject: 'CN=x', names: [{ type: 'email', value: 'good' }] },
      others: [{ names: [{ type: 'url', value: 'good' }] }, { subject: 'OU=good, CN=x' }],
    },
  ];
  for (const { field, patterns, matching, others } of patterned)
    it(`compares ${field} with its own kind of name only, as a whole: ${[patterns].flat().join()}`, async () => {
      await role('web', { [field]: patterns });
      expect((await login(shown(await authority.certify(matching)))).status).to.equal(200);
      for (const other of others)
        expect(refusalOf(await login(shown(await authority.certify(other)))), JSON.stringify(other)).to.equal(noMatch);
    });

  it('requires a match of every kind of name that the role lists', async () => {
    await role('web', { allowed_common_names: 'web', allowed_dns_sans: 'web.example' });
    const certify = (subject: string, ...dns: readonly string[]) =>
      authority.certify({ subject, names: dns.map((value) => ({ type: 'dns', value })) });
    expect((await login(shown(await certify('CN=web', 'x', 'web.example')))).status).to.equal(200);
    for (const other of [await certify('CN=web', 'x'), await certify('CN=db', 'web.example'), await certify('CN=web')])
      expect(refusalOf(await login(shown(other)))).to.equal(noMatch);
  });

  it('refuses a list of names or addresses that has only empty texts, and so would allow any', async () => {
    for (const field of [...new Set(patterned.map(({ field }) => field)), 'token_bound_cidrs', 'bound_cidrs'])
      for (const blank of [[''], ','])
        expect(refusalOf(await write('web', { certificate: authority.cert, [field]: blank })), field).to.equal(
          `400 Field validation failed: error converting input for field "${field}": it has only empty strings; send an empty list for no limit`,
        );
    await role('web', { allowed_common_names: [], allowed_dns_sans: '', token_bound_cidrs: '' });
    expect((await login(shown(client))).status).to.equal(200);
  });

  it('refuses bytes that are no certificate, although OpenSSL verified one', async () => {
    await role('web');
    const text = clientCertificateText({
      sha256: 'aa',
      expiresMs: Date.now() + 9999,
      der: Buffer.from('30ff', 'hex'),
      chains: [['aa', sha256Of(authority.cert)]],
    });
    expect(refusalOf(await login({ [header]: text }))).to.equal('400 invalid certificate: its names cannot be read');
  });

  it('logs in only from the addresses of the role', async () => {
    await role('web', { token_bound_cidrs: '192.0.2.0/24' });
    const from = (address: string) => login({ ...shown(client), 'x-transitd-caller': address });
    expect(refusalOf(await from('198.51.100.1'))).to.equal(noMatch);
    expect((await from('192.0.2.1')).status).to.equal(200);
  });

  it('refuses roles whose certificate no client can have, and settings that it does not have', async () => {
    const serverOnly = await authority.certify({ usages: ['serverAuth'] });
    for (const [settings, reason] of [
      [{}, 'failed to parse certificate'],
      [{ certificate: '' }, 'failed to parse certificate'],
      [{ certificate: 'no PEM' }, 'failed to parse certificate'],
      [{ certificate: client.key }, 'failed to parse certificate'],
      [{ certificate: client.cert + client.key }, 'failed to parse certificate'],
      [{ certificate: serverOnly.cert }, 'nonCA certificates should have TLS client authentication'],
      [{ certificate: authority.cert.repeat(17) }, 'more than 16 certificates'],
      [{ certificate: authority.cert, ocsp_enabled: true }, 'ocsp_enabled is not supported: '],
      [{ certificate: authority.cert, required_extensions: ['1.2.3:x'] }, 'required_extensions is not supported: '],
      [{ certificate: authority.cert, allowed_metadata_extensions: ['1.2.3'] }, 'allowed_metadata_extensions is not supported: '],
      [{ certificate: authority.cert, token_policies: ['root'] }, 'auth methods cannot create root tokens'],
    ] as const)
      expect(refusalOf(await write('web', settings)))
        .to.match(/^400 /)
        .and.include(reason);
    await role('web', { ocsp_enabled: false, required_extensions: [] });
  });

  describe('with token_bound_certificate', () => {
    let token: string;
    let accessor: string;
    let other: TestIdentity;
    beforeEach(async () => {
      await role('web', { token_bound_certificate: true });
      const { body } = await login(shown(client));
      ({ client_token: token, accessor } = body.auth);
      other = await authority.certify({ subject: 'CN=web, OU=ops, O=Example' });
    });
    const look = async (headers: Readonly<Record<string, string>>, used = token): Promise<number> =>
      (await at.ask('GET auth/token/lookup-self', { token: used, headers })).status;

    it('gives tokens that work only with the certificate, while it is valid', async () => {
      expect(await look(shown(client))).to.equal(200);
      expect(await look({})).to.equal(403);
      expect(await look(shown(other))).to.equal(403);
      expect(await look(shown(client, { expiresMs: Date.now() - 1 }))).to.equal(403);
      const { body } = await at.ask('POST auth/token/lookup', { body: { token } });
      expect(body.data.bound_certificate).to.equal(sha256Of(client.cert));
    });

    it('gives tokens that nobody renews without the certificate', async () => {
      expect((await at.ask('POST auth/token/renew-self', { token, headers: shown(client) })).status).to.equal(200);
      for (const [path, body] of [
        ['renew', { token }],
        ['renew-accessor', { accessor }],
      ] as const) {
        for (const headers of [{}, shown(other)])
          expect(refusalOf(await at.ask(`POST auth/token/${path}`, { body, headers })))
            .to.match(/^400 /)
            .and.include('bound to another client certificate');
        expect((await at.ask(`POST auth/token/${path}`, { body, headers: shown(client) })).status).to.equal(200);
      }
    });

    it('binds child tokens, orphans and batch tokens too', async () => {
      const policy = 'path "auth/token/*" { capabilities = ["update", "sudo"] }';
      await at.ask('POST sys/policies/acl/user', { body: { policy } });
      for (const [path, body] of [
        ['create', {}],
        ['create', { type: 'batch' }],
        ['create-orphan', {}],
      ] as const) {
        const made = await at.ask(`POST auth/token/${path}`, { token, headers: shown(client), body });
        const child = made.body.auth.client_token;
        expect(await look(shown(client), child)).to.equal(200);
        expect(await look({}, child)).to.equal(403);
      }
      await role('web', { token_type: 'batch' });
      const batch = (await login(shown(client))).body.auth.client_token;
      expect(await look(shown(client), batch)).to.equal(200);
      expect(await look(shown(other), batch)).to.equal(403);
    });

    it('lets a privileged caller without the certificate revoke them', async () => {
      expect((await at.ask('POST auth/token/revoke', { body: { token } })).status).to.equal(204);
      expect(await look(shown(client))).to.equal(403);
    });

    it('shows no mounts to a caller without the certificate', async () => {
      const seen = async (headers: Readonly<Record<string, string>>) =>
        Object.keys((await at.ask('GET sys/internal/ui/mounts', { token, headers })).body.data.secret);
      await at.ask('POST sys/policies/acl/user', { body: { policy: 'path "transit/*" { capabilities = ["read"] }' } });
      expect(await seen(shown(client))).to.deep.equal(['transit/']);
      expect(await seen({})).to.deep.equal([]);
    });
  });
});
