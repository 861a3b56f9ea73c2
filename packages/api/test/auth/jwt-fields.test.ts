import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { type Served, served } from '../served.ts';

const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' });
const keys = { jwt_validation_pubkeys: pem, bound_issuer: 'i' };
const role = { user_claim: 'sub', bound_audiences: 'a' };

describe('the fields of a jwt method', () => {
  let at: Served;
  before(async () => {
    at = await served();
    await at.ask('POST sys/auth/jwt', { body: { type: 'jwt' } });
  });
  after(() => at.close());

  const written = async (path: string, body: object) => {
    const answer = await at.ask(`POST auth/jwt/${path}`, { body });
    const read = (await at.ask(`GET auth/jwt/${path}`)).body.data;
    return { status: answer.status, errors: answer.body.errors, warnings: answer.body.warnings, read };
  };

  it('have the defaults of the peers in a configuration', async () => {
    const { status, read } = await written('config', keys);
    expect(status).to.equal(204);
    expect(read).to.deep.equal({
      ...{ jwt_validation_pubkeys: [pem], jwks: '', jwks_file: '', jwks_url: '', jwks_ca_pem: '' },
      ...{ oidc_discovery_url: '', oidc_discovery_ca_pem: '', provider_config: {} },
      ...{ bound_issuer: 'i', jwt_supported_algs: [], default_role: '', namespace_in_state: true },
    });
  });

  it('have the defaults of the peers in a role', async () => {
    const { status, read } = await written('role/plain', role);
    expect(status).to.equal(204);
    expect(read).to.include({ clock_skew_leeway: 0, max_age: 0, user_claim_json_pointer: false, bound_claims_type: 'string' });
  });

  for (const [given, read] of [
    [{ clock_skew_leeway: -1 }, { clock_skew_leeway: -1 }],
    [{ clock_skew_leeway: '-1' }, { clock_skew_leeway: -1 }],
    [{ clock_skew_leeway: '2m' }, { clock_skew_leeway: 120 }],
    [{ clock_skew_leeway: 0 }, { clock_skew_leeway: 0 }],
    [{ max_age: '1h' }, { max_age: 3600 }],
    [
      { user_claim_json_pointer: true, user_claim: '/a/b' },
      { user_claim_json_pointer: true, user_claim: '/a/b' },
    ],
  ] as const)
    it(`of a role are returned without a warning: ${JSON.stringify(given)}`, async () => {
      const { status, read: found } = await written('role/given', { ...role, ...given });
      expect(status).to.equal(204);
      expect(found).to.include(read);
    });

  for (const [name, given, read] of [
    ['expiration_leeway', '150s', 150],
    ['expiration_leeway', -1, -1],
    ['not_before_leeway', 30, 30],
  ] as const)
    it(`of a role are returned with a warning, as they have no effect: ${name} ${given}`, async () => {
      const { status, warnings, read: found } = await written(`role/inert`, { ...role, [name]: given });
      expect([status, warnings]).to.deep.equal([200, [`These parameters have no effect here: [${name}]`]]);
      expect(found[name]).to.equal(read);
    });

  for (const [path, body, error] of [
    ['role/r', { ...role, max_age: -1 }, /max_age/],
    ['role/r', { ...role, clock_skew_leeway: 301 }, /clock_skew_leeway is at most 300s/],
    ['role/r', { ...role, clock_skew_leeway: 'soon' }, /clock_skew_leeway/],
    ['role/r', { ...role, bound_claims: { a: 1 }, bound_claims_type: 'glob' }, /must be strings if bound_claims_type is "glob"/],
    ['role/r', { ...role, bound_claims_type: 'regex' }, /invalid bound_claims_type/],
    ['config', { bound_issuer: 'i', provider_config: 'kubernetes' }, /provider_config/],
    [
      'config',
      { bound_issuer: 'i', provider_config: { provider: 'azure' } },
      /^invalid provider_config: provider must be "kubernetes"$/,
    ],
    ['config', { bound_issuer: 'i', provider_config: { fetch_groups: true } }, /^invalid provider_config: provider must be/],
    [
      'config',
      { bound_issuer: 'i', provider_config: { provider: 'kubernetes', a: 1 } },
      /^invalid provider_config: kubernetes has no other settings$/,
    ],
    ['config', { ...keys, provider_config: { provider: 'kubernetes' } }, /, not jwt_validation_pubkeys and provider_config$/],
    ['config', { ...keys, oidc_discovery_url: 'https://issuer' }, /, not jwt_validation_pubkeys and oidc_discovery_url$/],
    ['config', { bound_issuer: 'i' }, /^exactly one of .* must be set$/],
    ['config', { provider_config: { provider: 'kubernetes' } }, /^bound_issuer must be set$/],
    ['config', { oidc_discovery_url: 'https://issuer' }, /^error checking oidc discovery URL: this node does not fetch keys$/],
    ['config', { ...keys, jwt_supported_algs: 'HS256' }, /^jwt_supported_algs must name some of RS256/],
  ] as const)
    it(`are refused: ${path} with ${Object.keys(body).join(', ')}: ${error.source}`, async () => {
      await written('config', keys);
      const before = (await at.ask(`GET auth/jwt/${path}`)).body.data;
      const { status, errors, read } = await written(path, body);
      expect(status).to.equal(400);
      expect(errors[0]).to.match(error);
      expect(read).to.deep.equal(before);
    });
});
