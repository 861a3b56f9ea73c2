import { generateKeyPairSync } from 'node:crypto';
import type { Field, FieldSchema } from '@transitd/http';
import { expect } from 'chai';
import { unsupportedOfConfig } from '../../src/auth/jwt/config.ts';
import { inertOfRole } from '../../src/auth/jwt/method.ts';
import { inertOfMount, unsupportedOfMount } from '../../src/operation/inert-fields.ts';
import { allRoutes } from '../../src/routes.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

const samples = { strings: ['X-One', 'X-Two'], bool: true, int: 7, duration: -1 } as const;
const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' });
const texts: Readonly<Record<string, string>> = { listing_visibility: 'unauth', token_type: 'batch', identity_token_key: 'k' };

/** Returns a value other than the default for each setting. */
const samplesOf = (declared: FieldSchema): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(declared).map(([name, { kind }]) => [
      name,
      samples[kind as keyof typeof samples] ?? texts[name] ?? expect.fail(name),
    ]),
  );

/** Ignored fields of requests that the peers do not return, or not as they were sent. */
const notReturned = new Set([
  ...['plugin_name', 'stored_shares', 'disable_upgrade_migration'],
  ...['leader_client_cert', 'leader_client_key', 'leader_tls_servername', 'auto_join_scheme', 'auto_join_port'],
  ...['primary_api_addr', 'primary_cluster_addr', 'update_mode'],
]);

describe('settings without effect', () => {
  let at: Served;
  beforeEach(async () => {
    at = await served();
  });
  afterEach(() => at.close());

  const put = async (path: string, body: object): Promise<void> => {
    expect((await at.ask(`POST ${path}`, { body })).status, path).to.be.oneOf([200, 204]);
  };
  const get = async (path: string) => (await at.ask(`GET ${path}`)).body.data;

  it('are each either returned, or known not to be', () => {
    const ignored = new Map<string, string>();
    for (const { operations } of allRoutes(new TestMetrics()))
      for (const { takes = {}, byType = {} } of Object.values(operations))
        for (const each of [takes, ...Object.values(byType).map((described) => described.takes ?? {})])
          for (const [name, { ignored: isIgnored, about }] of Object.entries(each)) if (isIgnored) ignored.set(name, about);
    expect(ignored.size).to.be.above(20);
    const other = [...ignored].filter(([, about]) => about !== 'Stored and returned, but has no effect').map(([name]) => name);
    expect(other.sort()).to.deep.equal([...notReturned].sort());
  });

  it('that cannot be set are refused with the reason, unless they are empty', async () => {
    await put('sys/auth/jw', { type: 'jwt' });
    const keys = { jwt_validation_pubkeys: [pem], bound_issuer: 'i', jwt_supported_algs: ['ES256'] };
    for (const [declared, targets] of [
      [unsupportedOfConfig, [['auth/jw/config', (given: object) => ({ ...keys, ...given })]]],
      [
        unsupportedOfMount,
        [
          ['sys/mounts/transit/tune', (given: object) => given],
          ['sys/auth/jw/tune', (given: object) => given],
          ['sys/mounts/more', (config: object) => ({ type: 'transit', config })],
          ['sys/auth/more', (config: object) => ({ type: 'userpass', config })],
        ],
      ],
    ] as const)
      for (const [name, { kind, unsupported }] of Object.entries<Field>(declared))
        for (const [path, bodyOf] of targets) {
          const value = kind === 'string' ? 'x' : kind === 'strings' ? ['x'] : { a: 'x' };
          const { status, body } = await at.ask(`POST ${path}`, { body: bodyOf({ [name]: value }) });
          expect([status, body.errors], `${path} ${name}`).to.deep.equal([400, [`${name} is not supported: ${unsupported}`]]);
          await put(path, bodyOf({ [name]: kind === 'string' ? '' : kind === 'strings' ? [] : {} }));
          if (path.endsWith('/more')) await at.ask(`DELETE ${path}`);
        }
  });

  const settings = samplesOf(inertOfMount);
  for (const [path, tunedAt, type] of [
    ['sys/mounts/orders', ['sys/mounts/orders/tune'], 'transit'],
    ['sys/auth/team/people', ['sys/auth/team/people/tune', 'sys/mounts/auth/team/people/tune'], 'userpass'],
  ] as const) {
    const fixed = { local: true, seal_wrap: true, external_entropy_access: true, options: { a: 'b' } };

    it(`are returned as they were written when ${path} is enabled, and kept when it is tuned`, async () => {
      await put(path, { type, ...fixed, config: settings });
      await put(tunedAt[0], { description: 'changed' });
      const read = await get(path);
      expect(read).to.deep.include({ ...fixed, description: 'changed' });
      expect(read.config).to.deep.include(settings);
      for (const place of tunedAt) expect(await get(place)).to.deep.include({ ...settings, options: fixed.options });
      const [, table, ...names] = path.split('/');
      expect((await get(`sys/${table}`))[`${names.join('/')}/`]).to.deep.equal(read);
    });

    for (const place of tunedAt)
      it(`are returned as they were written at ${place}; an empty one is removed`, async () => {
        await put(path, { type });
        expect((await get(path)).config).to.not.have.any.keys('listing_visibility', 'allowed_response_headers');
        await put(place, settings);
        expect((await get(path)).config).to.deep.include(settings);
        await put(place, { listing_visibility: 'hidden', allowed_response_headers: [], force_no_cache: false });
        const { config } = await get(path);
        expect(config).to.include({ listing_visibility: 'hidden', force_no_cache: false, identity_token_key: 'k' });
        expect(config).to.not.have.property('allowed_response_headers');
      });

    it(`are refused at ${path} if the peers refuse them, or if they are long`, async () => {
      for (const config of [
        { listing_visibility: 'everybody' },
        { token_type: 'x' },
        { passthrough_request_headers: ['x'.repeat(5000)] },
      ])
        expect((await at.ask(`POST ${path}`, { body: { type, config } })).status, Object.keys(config).join()).to.equal(400);
    });
  }

  it('are returned by the configuration and the roles of a jwt method', async () => {
    await put('sys/auth/jwt', { type: 'jwt' });
    const config = { jwt_validation_pubkeys: [pem], bound_issuer: 'i', jwt_supported_algs: ['ES256'] };
    for (const [given, read] of [
      [undefined, true],
      [true, true],
      [false, false],
    ] as const) {
      await put('auth/jwt/config', { ...config, namespace_in_state: given });
      expect((await get('auth/jwt/config')).namespace_in_state).to.equal(read);
    }
    const role = samplesOf(inertOfRole);
    await put('auth/jwt/role/ci', { bound_audiences: ['a'], user_claim: 'sub', ...role });
    await put('auth/jwt/role/ci', { bound_subject: 's' });
    expect(await get('auth/jwt/role/ci')).to.deep.include({ ...role, bound_subject: 's' });
  });

  it('are returned by quotas and their configuration', async () => {
    await put('sys/quotas/rate-limit/q', { rate: 10_000 });
    expect((await get('sys/quotas/rate-limit/q')).inheritable).to.equal(true);
    await put('sys/quotas/rate-limit/q', { inheritable: false });
    expect((await get('sys/quotas/rate-limit/q')).inheritable).to.equal(false);
    await put('sys/quotas/config', { enable_rate_limit_audit_logging: true });
    expect((await get('sys/quotas/config')).enable_rate_limit_audit_logging).to.equal(true);
  });
});
