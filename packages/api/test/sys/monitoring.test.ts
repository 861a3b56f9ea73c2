import type { AuditDevices } from '@transitd/audit';
import { parseConfig } from '@transitd/configuration';
import { expect } from 'chai';
import { type Served, served } from '../served.ts';

const device = { name: 'main', type: 'stdout' };
const audit = { configs: [device], names: ['main'], write: async () => undefined } as unknown as AuditDevices;

describe('endpoints of monitoring', () => {
  let server: Served;
  before(async () => {
    server = await served({ audit });
    const config = parseConfig({
      node_id: 'n1',
      data_dir: '/var/lib/secret-place',
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      seal: { type: 'static', key_file: '/run/secret-key', key_id: 'k1' },
    });
    Object.assign(server.node, { config });
  });
  after(() => server.close());
  const tokenWith = async (policy: string): Promise<string> => {
    await server.ask('POST sys/policies/acl/own', { body: { policy } });
    return (await server.ask('POST auth/token/create', { body: { policies: ['own'] } })).body.auth.client_token;
  };

  it('show that CORS is disabled, and the available types, to a token with sudo', async () => {
    const token = await tokenWith('path "sys/*" { capabilities = ["read"] }');
    for (const line of ['GET sys/config/cors', 'GET sys/plugins/catalog']) {
      expect((await server.ask(line, { token })).status).to.equal(403);
      expect((await server.ask(line)).status).to.equal(200);
    }
    const cors = (await server.ask('GET sys/config/cors')).body;
    expect([cors.enabled, cors.data]).to.deep.equal([false, { enabled: false }]);
    const { data } = (await server.ask('GET sys/plugins/catalog')).body;
    expect(data).to.deep.include({
      auth: ['token', 'approle', 'cert', 'jwt', 'kubernetes', 'userpass'],
      secret: ['transit'],
      database: [],
    });
    expect(data.detailed).to.have.length(7);
  });

  it('show settings without paths of keys and data', async () => {
    const { text, body } = await server.ask('GET sys/config/state/sanitized');
    expect(body.data).to.deep.include({ node_id: 'n1', seals: [{ type: 'static', disabled: false }], storage: { type: 'raft' } });
    expect(body.data.listeners).to.have.length(1);
    for (const { config } of body.data.listeners) expect(config.address).to.match(/^127\.0\.0\.1:\d+$/);
    expect(text).not.to.match(/secret|k1/);
  });

  it('have the hash of a string at the top level as well as in data', async () => {
    const { body } = await server.ask('POST sys/audit-hash/main', { body: { input: 'x' } });
    expect(body.hash)
      .to.match(/^hmac-sha256:/)
      .and.equal(body.data.hash);
  });

  it('answer 404 for paths that the documentation lists as not served', async () => {
    for (const path of ['loggers', 'locked-users', 'version-history', 'in-flight-req', 'pprof'])
      expect((await server.ask(`GET sys/${path}`)).status, path).to.equal(404);
  });
});

describe('settings without effect', () => {
  let server: Served;
  before(async () => {
    server = await served();
  });
  after(() => server.close());

  for (const [line, body, named] of [
    [
      'POST sys/mounts/transit/tune',
      { listing_visibility: 'unauth', audit_non_hmac_request_keys: ['plaintext'] },
      'audit_non_hmac_request_keys listing_visibility',
    ],
    ['POST sys/mounts/other', { type: 'transit', config: { force_no_cache: true } }, 'force_no_cache'],
    ['POST sys/auth/people', { type: 'userpass', local: true }, 'local'],
    ['POST sys/auth/people/tune', { token_type: 'batch' }, 'token_type'],
    ['POST sys/quotas/rate-limit/q', { type: 'rate-limit', rate: 10, inheritable: false }, 'inheritable'],
    ['POST sys/quotas/config', { enable_rate_limit_audit_logging: true }, 'enable_rate_limit_audit_logging'],
    ['POST sys/auth/ids', { type: 'jwt', seal_wrap: true, options: {} }, 'seal_wrap'],
  ] as const) {
    it(`are named in a warning by ${line}: ${named}`, async () => {
      const { body: answer } = await server.ask(line, { body });
      expect(answer.warnings).to.include(`These parameters have no effect here: [${named}]`);
    });
  }

  it('cause no warning if they are false or empty, as clients send them', async () => {
    const body = {
      listing_visibility: '',
      force_no_cache: false,
      audit_non_hmac_request_keys: [],
      user_lockout_config: {},
      token_type: null,
    };
    expect((await server.ask('POST sys/mounts/transit/tune', { body })).status).to.equal(204);
  });
});
