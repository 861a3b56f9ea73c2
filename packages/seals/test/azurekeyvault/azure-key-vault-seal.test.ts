import { constants, generateKeyPairSync, type KeyObject, privateDecrypt, publicEncrypt, randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { SealBackend } from '../../src/backend/seal-backend.ts';
import { cloudSeal } from '../../src/cloud-seal.ts';
import { describeContract } from '../contract/contract.ts';
import { providerErrorOf } from '../contract/provider-error-of.ts';
import { connectTo } from '../http/connect-to.ts';
import { type StubAnswer, stubProvider } from '../http/stub-provider.ts';

const secret = 'the~client.secret';
const key = randomBytes(32);
const refused = (status: number, code: string, message: string): StubAnswer => [status, { error: { code, message } }];

/** A key vault, the authority and the metadata service of Azure on loopback, as their documentation describes them. */
async function azureMock() {
  const newPair = () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const keys: Record<string, { version: string; key: KeyObject }[]> = {
    one: [{ version: 'a'.repeat(32), key: newPair() }],
    two: [{ version: 'b'.repeat(32), key: newPair() }],
  };
  const state = { nowMs: 1_800_000_000_000, issued: 0, valid: new Set<string>(), answer: undefined as StubAnswer | undefined };
  const issue = (expires_in: number | string): StubAnswer => {
    state.issued += 1;
    const access_token = `token-${state.issued}`;
    state.valid.add(access_token);
    return [200, { token_type: 'Bearer', expires_in, access_token }];
  };
  const authority = await stubProvider(({ method, path, headers, text }) => {
    const form = Object.fromEntries(new URLSearchParams(text));
    if (method !== 'POST' || path !== '/tenant-1/oauth2/v2.0/token') return [404, {}];
    if (headers['content-type'] !== 'application/x-www-form-urlencoded') return [400, { error: 'invalid_request' }];
    const isRight = form['grant_type'] === 'client_credentials' && form['scope'] === 'https://vault.azure.net/.default';
    const isProven =
      form['client_secret'] === secret ||
      (form['client_assertion'] === 'federated' &&
        form['client_assertion_type'] === 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer');
    if (!isRight || form['client_id'] !== 'client-1' || !isProven)
      return [401, { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret provided.' }];
    return issue(3600);
  });
  const metadata = await stubProvider(({ path, headers }) => {
    const { pathname, searchParams } = new URL(path, 'http://metadata');
    const isRight =
      pathname === '/metadata/identity/oauth2/token' &&
      searchParams.get('api-version') === '2018-02-01' &&
      searchParams.get('resource') === 'https://vault.azure.net' &&
      searchParams.get('client_id') === 'client-1' &&
      headers['metadata'] === 'true';
    return isRight ? issue('3600') : [400, { error: 'invalid_request' }];
  });
  const vault = await stubProvider(({ method, path, headers, body }) => {
    if (state.answer !== undefined) return state.answer;
    if (!state.valid.has(String(headers.authorization).replace(/^Bearer /, ''))) return refused(401, 'Unauthorized', 'AKV10000');
    const [, name = '', version = '', operation] =
      /^\/keys\/([^/]+)\/([0-9a-f]*)\/(wrapkey|unwrapkey)\?api-version=7\.4$/.exec(path) ?? [];
    if (method !== 'POST' || operation === undefined || body['alg'] !== 'RSA-OAEP-256')
      return refused(400, 'BadParameter', 'not a request to a key vault');
    const versions = keys[name] ?? [];
    const found = version === '' ? versions.at(-1) : versions.find((each) => each.version === version);
    if (found === undefined) return refused(404, 'KeyNotFound', `A key with (name/id) ${name} was not found`);
    const value = Buffer.from(String(body['value']), 'base64url');
    const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
    try {
      const result =
        operation === 'wrapkey'
          ? publicEncrypt({ key: found.key, ...padding }, value)
          : privateDecrypt({ key: found.key, ...padding }, value);
      const kid = `https://vault-1.vault.azure.net/keys/${name}/${found.version}`;
      return [200, { kid, value: result.toString('base64url') }];
    } catch {
      return refused(400, 'BadParameter', 'The parameter is incorrect.');
    }
  });
  const connect = connectTo({
    'https://login.microsoftonline.com': () => authority.address,
    'http://169.254.169.254': () => metadata.address,
    'https://vault-1.vault.azure.net': () => vault.address,
  });
  const close = async (): Promise<void> => {
    await Promise.all([authority.close(), metadata.close(), vault.close()]);
  };
  const rotate = () => void keys['one']?.push({ version: 'c'.repeat(32), key: newPair() });
  const sealOf = (key_name: string, more: object = { client_secret_env: 'S' }, env: object = {}): SealBackend =>
    cloudSeal(
      {
        ...{ type: 'azurekeyvault', vault_name: 'Vault-1', key_name, tenant_id: 'tenant-1', client_id: 'client-1' },
        ...{ environment: 'AZUREPUBLICCLOUD', ...more },
      },
      { env: { S: secret, ...env }, connect, nowMs: () => state.nowMs },
    );
  return { state, rotate, sealOf, close };
}

describeContract('azurekeyvault', async () => {
  const mock = await azureMock();
  return {
    seal: mock.sealOf('one'),
    otherKey: mock.sealOf('two'),
    secrets: [secret, 'token-1'],
    rotate: mock.rotate,
    behave: (behavior) => {
      mock.state.answer = (
        {
          serves: undefined,
          away: (res) => void res.destroy(),
          refuses: [403, { error: { code: 'Forbidden', message: 'The user does not have keys wrapKey permission' } }],
          throttles: [429, { error: { code: 'Throttled', message: 'Request was not processed' } }, { 'retry-after': '9' }],
          garbles: [200, '<html>'],
        } as const satisfies Record<string, StubAnswer | undefined>
      )[behavior];
    },
    close: mock.close,
  };
}, ['draws']);

describe('an azurekeyvault seal', () => {
  let mock: Awaited<ReturnType<typeof azureMock>>;
  let folder = '';
  beforeEach(async () => {
    mock = await azureMock();
    folder = mkdtempSync(join(tmpdir(), 'transitd-azure-'));
  });
  afterEach(async () => {
    await mock.close();
    rmSync(folder, { recursive: true });
  });

  it('keeps its token until five minutes before its end, and gets another one when it is refused', async () => {
    const seal = mock.sealOf('one');
    const wrapped = await seal.wrap(key);
    mock.state.nowMs += 3_200_000;
    await seal.unwrap(wrapped);
    expect(mock.state.issued).to.equal(1);
    mock.state.nowMs += 200_000;
    await seal.unwrap(wrapped);
    expect(mock.state.issued).to.equal(2);
    mock.state.valid.clear();
    const error = await providerErrorOf(seal.unwrap(wrapped));
    expect([error.failure, error.message]).to.deep.equal([
      'permission',
      'the azurekeyvault seal with the key Vault-1/one refuses the credentials of this node, which need the rights wrapKey and unwrapKey for it: status 401: Unauthorized: AKV10000',
    ]);
    await seal.unwrap(wrapped);
  });

  it('uses a federated token of Kubernetes, or the managed identity of the instance', async () => {
    const file = join(folder, 'federated');
    writeFileSync(file, 'federated\n');
    await mock.sealOf('one', {}, { AZURE_FEDERATED_TOKEN_FILE: file }).wrap(key);
    await mock.sealOf('one', {}).wrap(key);
    writeFileSync(file, 'other');
    const error = await providerErrorOf(mock.sealOf('one', {}, { AZURE_FEDERATED_TOKEN_FILE: file }).wrap(key));
    expect(error.message).to.equal(
      'the authority https://login.microsoftonline.com gives no token: status 401: invalid_client: AADSTS7000215: Invalid client secret provided.',
    );
    chmodSync(file, 0o620);
    const refused = await providerErrorOf(mock.sealOf('one', {}, { AZURE_FEDERATED_TOKEN_FILE: file }).wrap(key));
    expect(refused.failure).to.equal('permission');
    expect(refused.message).to.match(/^AZURE_FEDERATED_TOKEN_FILE cannot be read: .*has mode 0620/);
  });

  it('reads the secret from its file for each token, and does not show it', async () => {
    const file = join(folder, 'secret');
    writeFileSync(file, 'an-old-secret', { mode: 0o600 });
    const seal = mock.sealOf('one', { client_secret_file: file });
    const error = await providerErrorOf(seal.wrap(key));
    expect(error.failure).to.equal('permission');
    expect(error.message).to.not.contain('an-old-secret');
    writeFileSync(file, secret);
    await seal.wrap(key);
  });

  it('does not ask the vault for a key that another seal has encrypted', async () => {
    for (const keyId of ['vault-2/one/aaaa', `Vault-1/two/${'a'.repeat(32)}`, 'Vault-1/one/..', 'Vault-1/one/', ''])
      expect((await providerErrorOf(mock.sealOf('one').unwrap({ keyId, ciphertext: 'AAAA' }))).message).to.match(
        /has not encrypted the stored key/,
      );
    expect(mock.state.issued).to.equal(0);
  });
});
