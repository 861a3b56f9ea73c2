import { expect } from 'chai';
import { type Served, served } from '../served.ts';

type Row = readonly [path: string, denied: string, spelled: object, other: object];

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const input = base64('x');
const policy = 'path "secret/*" { capabilities = ["sudo"] }';
const role = { bound_audiences: ['a'], user_claim: 'sub' };
const block = 'token_bound_cidrs = ["10.0.0.0/8"]';
const jwks = 'jwks_url = ["https://keys.example/set"]';
const apiServer = 'kubernetes_host = ["https://api.example"]';

/** A denied value, a request that means it in another spelling, and a request that means another value. */
const rows: readonly Row[] = [
  ['t/sign/k', 'salt_length = ["hash"]', { input, salt_length: '-1' }, { input, salt_length: 'auto' }],
  ['t/sign/k', 'salt_length = [-1]', { input, salt_length: 'HASH' }, { input }],
  ['t/sign/k', 'salt_length = ["hash"]', { input, salt_length: '32' }, { input, salt_length: '31' }],
  ['t/sign/k', 'salt_length = [32]', { input, salt_length: 'hash' }, { input, salt_length: 'hash', hash_algorithm: 'sha2-512' }],
  ['t/sign/k', 'salt_length = ["auto"]', { input }, { input, salt_length: 'hash' }],
  ['t/sign/k', 'salt_length = ["auto"]', { input, salt_length: 0 }, { input, salt_length: 1 }],
  ['t/sign/k', 'salt_length = [0]', { input, salt_length: '' }, { input, salt_length: 'hash' }],
  ['t/verify/k', 'salt_length = ["0"]', { input, salt_length: 'auto' }, { input, salt_length: 'hash' }],
  ['t/sign/k', 'signature_algorithm = ["pss"]', { input }, { input, signature_algorithm: 'pkcs1v15' }],
  ['t/sign/k', 'signature_algorithm = ["pss"]', { input, signature_algorithm: null }, { input, signature_algorithm: 'pkcs1v15' }],
  ['t/sign/k', 'marshaling_algorithm = ["asn1"]', { input, marshaling_algorithm: '' }, { input, marshaling_algorithm: 'jws' }],
  ['t/sign/k', 'hash_algorithm = ["sha2-256"]', { batch_input: [{ input }] }, { input, hash_algorithm: 'sha2-512' }],
  ['t/sign/k', 'key_version = [0]', { input }, { input, key_version: 1 }],
  ['t/encrypt/k', 'padding_scheme = ["oaep"]', { plaintext: input }, { plaintext: input, padding_scheme: 'pkcs1v15' }],
  [
    't/encrypt/k',
    'padding_scheme = ["oaep"]',
    { padding_scheme: 'pkcs1v15', batch_input: [{ plaintext: input, padding_scheme: 'pkcs1v15' }, { plaintext: input }] },
    { batch_input: [{ plaintext: input, padding_scheme: 'pkcs1v15' }] },
  ],
  [
    't/encrypt/k',
    'key_version = ["0"]',
    { key_version: 1, batch_input: [{ plaintext: input }] },
    { batch_input: [{ plaintext: input, key_version: 1 }] },
  ],
  ['t/encrypt/new', 'type = ["aes256-gcm96"]', { plaintext: input }, { plaintext: input, type: 'chacha20-poly1305' }],
  ['t/keys/new', 'type = ["aes256-gcm96"]', {}, { type: 'chacha20-poly1305' }],
  ['t/keys/new', 'type = ["ml-dsa"]', { type: 'mldsa-44' }, { type: 'ed25519' }],
  ['t/keys/new', 'type = ["mldsa-44"]', { type: 'ml-dsa', parameter_set: '44' }, { type: 'ml-dsa', parameter_set: '65' }],
  ['t/keys/new', 'parameter_set = [44]', { type: 'mldsa-44' }, { type: 'mldsa-65' }],
  ['t/keys/new', 'derived = [false]', {}, { derived: true }],
  ['t/keys/new', 'auto_rotate_period = [0]', { auto_rotate_period: '0s' }, { auto_rotate_period: '1h' }],
  ['t/keys/new/import', 'hash_function = ["sha256"]', { type: 'hmac' }, { type: 'hmac', hash_function: 'SHA512' }],
  ['sys/managed-keys/pkcs11/m', 'mechanism = ["CKM_RSA_PKCS"]', { mechanism: '0x1' }, { mechanism: '0xd' }],
  ['sys/managed-keys/pkcs11/m', 'mechanism = [1]', { mechanism: 'CKM_RSA_PKCS' }, { mechanism: 'CKM_ECDSA' }],
  ['sys/managed-keys/pkcs11/m', 'key_id = ["0AB1"]', { key_id: '0X0ab1' }, { key_id: '0ab2' }],
  ['sys/managed-keys/pkcs11/m', 'slot = ["16"]', { slot: '0x10' }, { slot: '0x11' }],
  ['sys/mounts/t/tune', 'max_lease_ttl = [0]', { max_lease_ttl: 'system' }, { max_lease_ttl: 60 }],
  ['sys/mounts/t/tune', 'max_lease_ttl = ["system"]', { max_lease_ttl: '0s' }, { max_lease_ttl: '60' }],
  ['sys/mounts/t/tune', 'max_lease_ttl = ["1m"]', { max_lease_ttl: 60 }, { max_lease_ttl: 61 }],
  ['sys/mounts/t/tune', 'max_lease_ttl = [60]', { max_lease_ttl: '+60s' }, { max_lease_ttl: '2m' }],
  ['sys/mounts/t/tune', 'max_lease_ttl = ["60"]', { max_lease_ttl: '1m0s' }, { max_lease_ttl: '' }],
  ['sys/quotas/rate-limit/q', 'path = ["t/"]', { path: 't', rate: 1 }, { path: 't/encrypt/k', rate: 1 }],
  ['auth/token/create', 'ttl = ["1m"]', { lease: '60' }, { ttl: '61' }],
  ['auth/token/create', 'num_uses = [0]', {}, { num_uses: 1 }],
  ['auth/token/create', 'type = ["service"]', { type: '' }, { type: 'batch' }],
  ['auth/up/users/u', block, { password: 'p', token_bound_cidrs: '10.1.2.3/8' }, { token_bound_cidrs: '10.0.0.0/9' }],
  ['auth/up/users/u', block, { token_bound_cidrs: ['127.0.0.1', '10.9.9.9/8'] }, { token_bound_cidrs: ['127.0.0.1'] }],
  [
    'auth/up/users/u',
    'token_bound_cidrs = ["10.9.0.1/8"]',
    { token_bound_cidrs: '::1, 10.0.0.0/8' },
    { token_bound_cidrs: '::1' },
  ],
  ['auth/ar/role/r', 'token_bound_cidrs = ["10.0.0.1"]', { token_bound_cidrs: '10.0.0.1/32' }, { token_bound_cidrs: '10.0.0.2' }],
  ['auth/ar/role/r', 'token_bound_cidrs = ["2001:db8::/32"]', { token_bound_cidrs: '2001:DB8:0::7/32' }, {}],
  ['auth/token/roles/r', block, { token_bound_cidrs: '10.1.0.0/8' }, { token_bound_cidrs: '11.0.0.0/8' }],
  ['auth/up/users/u', 'token_type = ["default"]', { password: 'p' }, { token_type: 'service' }],
  ['auth/up/users/u', 'token_type = ["service"]', { token_type: 'default-service' }, { token_type: 'batch' }],
  ['auth/token/roles/r', 'token_type = ["default-service"]', { token_type: '' }, { token_type: 'default-batch' }],
  ['auth/token/roles/r', 'token_type = ["batch"]', { token_type: 'default-batch' }, {}],
  ['auth/jw/config', jwks, { jwks_url: 'HTTPS://Keys.example:443/set' }, { jwks_url: 'https://keys.example:444/set' }],
  ['auth/jw/config', jwks, { jwks_url: 'https://k%65ys.example/%73et' }, { jwks_url: 'https://keys.example/sets' }],
  ['auth/jw/config', jwks, { jwks_url: 'https://u@keys.example./a/../set#x' }, { jwks_url: 'https://keys.example/a%2fset' }],
  [
    'auth/jw/config',
    'jwks_url = ["https://keys.example/*"]',
    { jwks_url: 'https://keys.example:443/x' },
    { jwks_url: 'https://k/' },
  ],
  [
    'auth/jw/config',
    'oidc_discovery_url = ["https://issuer.example/a"]',
    { oidc_discovery_url: 'https://Issuer.example:443/%61' },
    { oidc_discovery_url: 'https://issuer.example/b' },
  ],
  ['auth/ku/config', apiServer, { kubernetes_host: 'API.example' }, { kubernetes_host: 'api.example:6443' }],
  ['auth/ku/config', apiServer, { kubernetes_host: 'https://api.example:443/' }, { kubernetes_host: 'https://api.example/a' }],
  ['auth/jw/role/r', 'token_type = ["default"]', role, { ...role, token_type: 'batch' }],
  ['sys/policies/acl/p', 'policy = ["path*"]', { policy: base64(policy) }, { policy: base64('# none') }],
  ['sys/policy/p', 'policy = ["path*"]', { rules: base64(policy) }, { rules: '# none' }],
];

describe('a denied parameter value', () => {
  let at: Served;
  before(async () => {
    at = await served();
    for (const [path, body] of [
      ['sys/mounts/t', { type: 'transit' }],
      ['t/keys/k', { type: 'rsa-2048' }],
      ['sys/auth/up', { type: 'userpass' }],
      ['sys/auth/ar', { type: 'approle' }],
      ['sys/auth/jw', { type: 'jwt' }],
      ['sys/auth/ku', { type: 'kubernetes' }],
    ] as const)
      expect((await at.ask(`POST ${path}`, { body })).status, path).to.be.below(300);
  });
  after(() => at.close());

  const statusOf = async (path: string, denied: string, body: object): Promise<number> => {
    const rule = `path "${path}" { capabilities = ["create", "update", "sudo"] denied_parameters = { ${denied} } }`;
    await at.ask('POST sys/policies/acl/tried', { body: { policy: rule } });
    const made = await at.ask('POST auth/token/create', { body: { policies: ['tried'], no_default_policy: true } });
    return (await at.ask(`POST ${path}`, { token: made.body.auth.client_token, body })).status;
  };

  for (const [path, denied, spelled, other] of rows)
    it(`is denied in another spelling: ${path}: ${denied}: ${JSON.stringify(spelled)}, not ${JSON.stringify(other)}`, async () => {
      expect(await statusOf(path, denied, spelled)).to.equal(403);
      expect(await statusOf(path, denied, other)).to.not.equal(403);
    });

  for (const [path, denied, body] of [
    ['t/sign/k', 'signature_algorithm = []', { input }],
    ['t/sign/k', 'signature_algorithm = ["*"]', { input }],
    ['auth/up/users/u/policies', 'token_num_uses = [0]', { token_policies: ['a'] }],
  ] as const)
    it(`does not deny an omitted parameter: ${path}: ${denied}`, async () => {
      await at.ask('POST auth/up/users/u', { body: { password: 'a long password' } });
      expect(await statusOf(path, denied, body)).to.be.below(300);
    });
});
