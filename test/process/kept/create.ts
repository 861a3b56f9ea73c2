// Creates a data directory that later versions must open, with its expected content:
//   node test/process/kept/create.ts CHECKOUT test/process/kept/VERSION
// CHECKOUT is an installed checkout of the version that creates it. Results: VERSION.tar.gz and VERSION.json.
import { spawn, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate } from '../../../packages/process/test/certificate.ts';
import type { Kept } from './kept.ts';

const [checkout = '', target = ''] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'transitd-kept-'));
const node = join(checkout, 'node_modules/.bin/node');
const server = spawn(
  node,
  [
    join(checkout, 'packages/server/transitd.mjs'),
    'server',
    '--dev',
    '--data-dir',
    join(folder, 'data'),
    '--listen',
    '127.0.0.1:0',
  ],
  { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, TRANSITD_LOG_FORMAT: 'json' } },
);
process.on('exit', () => server.kill('SIGKILL'));
let printed = '';
const url = await new Promise<string>((resolve) => {
  server.stdout.on('data', (chunk) => {
    printed += String(chunk);
    const found = /http:\/\/[\d.]+:\d+/.exec(printed)?.[0];
    if (found !== undefined) resolve(found);
  });
});
const rootToken = readFileSync(join(folder, 'data/dev/root-token'), 'utf8').trim();

// biome-ignore lint/suspicious/noExplicitAny: answers of any shape
async function call(method: string, path: string, body?: object, token = rootToken): Promise<any> {
  const response = await fetch(`${url}/v1/${path}`, {
    method,
    headers: { 'X-Service-Token': token },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? {} : JSON.parse(text);
}
const base64 = (text: string): string => Buffer.from(text).toString('base64');

const plaintext = base64('kept from an earlier version');
const context = base64('context');
const kept: { -readonly [Name in keyof Kept]: Kept[Name] } = {
  plaintext,
  context,
  rootToken,
  ciphertexts: [],
  signatures: [],
  hmacs: [],
  reads: [],
  logins: [],
};
const ciphers = ['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305', 'rsa-2048'];
for (const type of ciphers)
  for (const derived of type.startsWith('rsa') ? [false] : [false, true]) {
    const name = `${type}${derived ? '-derived' : ''}`;
    await call('POST', `transit/keys/${name}`, { type, derived, exportable: true });
    for (const version of [1, 2]) {
      const sent = { plaintext, ...(derived && { context }) };
      kept.ciphertexts.push({ name, derived, text: (await call('POST', `transit/encrypt/${name}`, sent)).data.ciphertext });
      if (version === 1) await call('POST', `transit/keys/${name}/rotate`);
    }
    kept.hmacs.push({ name, text: (await call('POST', `transit/hmac/${name}`, { input: plaintext })).data.hmac });
  }
for (const type of ['ed25519', 'ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'rsa-3072']) {
  await call('POST', `transit/keys/${type}`, { type });
  kept.signatures.push({ name: type, text: (await call('POST', `transit/sign/${type}`, { input: plaintext })).data.signature });
}
await call('POST', 'transit/keys/aes256-gcm96/config', { min_decryption_version: 1, deletion_allowed: true });
await call('POST', 'sys/mounts/second', { type: 'transit' });
await call('POST', 'second/keys/aes256-gcm96', {});
await call('POST', 'sys/policies/acl/encrypts', { policy: 'path "transit/encrypt/aes256-gcm96" { capabilities = ["update"] }' });
await call('POST', 'sys/auth/userpass', { type: 'userpass' });
await call('POST', 'auth/userpass/users/alice', { password: 'correct horse', token_policies: ['encrypts'] });
await call('POST', 'sys/auth/approle', { type: 'approle' });
await call('POST', 'auth/approle/role/web', { token_policies: ['encrypts'] });
const { role_id } = (await call('GET', 'auth/approle/role/web/role-id')).data;
const { secret_id } = (await call('POST', 'auth/approle/role/web/secret-id')).data;
kept.logins.push(
  { path: 'auth/userpass/login/alice', body: { password: 'correct horse' } },
  { path: 'auth/approle/login', body: { role_id, secret_id } },
);
kept.policyToken = (
  await call('POST', 'auth/token/create', { policies: ['encrypts'], ttl: '87600h', explicit_max_ttl: '87600h' })
).auth.client_token;
await call('POST', 'sys/quotas/rate-limit/kept', { path: 'second/', rate: 1000 });

for (const [name, setting] of Object.entries({
  aging: { keep_encryption_versions: 1, keep_decryption_versions: 2, trim_after: '87600h' },
  counted: { max_operations: 1000 },
  disabled: {},
  deleted: {},
})) {
  await call('POST', `transit/keys/${name}`);
  await call('POST', `transit/keys/${name}/config`, setting);
  await call('POST', `transit/encrypt/${name}`, { plaintext });
  for (let version = 2; version <= 3; version++) await call('POST', `transit/keys/${name}/rotate`);
}
await call('POST', 'transit/keys/disabled/versions/1/disable', { reason: 'leaked' });
await call('DELETE', 'transit/keys/deleted/soft-delete');
const pem = String(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' }));
for (const [path, body] of Object.entries({
  'sys/auth/jwt': { type: 'jwt' },
  'auth/jwt/config': { jwt_validation_pubkeys: [pem], bound_issuer: 'https://issuer.example' },
  'auth/jwt/role/job': {
    role_type: 'jwt',
    user_claim: 'sub',
    bound_audiences: ['transitd'],
    bound_claims: { project: 'shop' },
    token_policies: ['encrypts'],
  },
  'sys/auth/kubernetes': { type: 'kubernetes' },
  'auth/kubernetes/config': { kubernetes_host: 'https://kubernetes.example', pem_keys: [pem], disable_local_ca_jwt: true },
  'auth/kubernetes/role/web': {
    bound_service_account_names: ['web'],
    bound_service_account_namespaces: ['shop-*'],
    token_policies: ['encrypts'],
  },
  'sys/auth/cert': { type: 'cert' },
  'auth/cert/certs/web': {
    certificate: readFileSync(makeCertificate(folder, 'web', 36_500).cert_file, 'utf8'),
    allowed_dns_sans: ['*.example'],
    token_bound_certificate: true,
    token_policies: ['encrypts'],
  },
}))
  await call('POST', path, body);
for (const path of [
  ...['aging', 'counted', 'disabled', 'deleted'].map((name) => `transit/keys/${name}`),
  'transit/keys/counted/usage',
  ...['auth/jwt/config', 'auth/jwt/role/job', 'auth/kubernetes/config', 'auth/kubernetes/role/web', 'auth/cert/certs/web'],
])
  kept.reads?.push({ path, data: (await call('GET', path)).data });

server.kill('SIGTERM');
await once(server, 'exit');
const packed = spawnSync(
  'tar',
  ['--sparse', '--exclude=ballast', '--sort=name', '-C', folder, '-czf', `${target}.tar.gz`, 'data'],
  { stdio: 'inherit' },
);
rmSync(folder, { recursive: true });
writeFileSync(`${target}.json`, `${JSON.stringify(kept, null, 1)}\n`);
process.exit(packed.status ?? 1);
