import { createVerify, generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { SealBackend } from '../../src/backend/seal-backend.ts';
import { cloudSeal } from '../../src/cloud-seal.ts';
import { describeContract } from '../contract/contract.ts';
import { KeysOfAProvider } from '../contract/keys-of-a-provider.ts';
import { providerErrorOf } from '../contract/provider-error-of.ts';
import { connectTo } from '../http/connect-to.ts';
import { type StubAnswer, stubProvider } from '../http/stub-provider.ts';

const key = randomBytes(32);
const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
const privateKey = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
const account = {
  type: 'service_account',
  client_email: 'unseal@project-1.iam.gserviceaccount.com',
  private_key_id: 'key-7',
  private_key: privateKey,
  token_uri: 'https://oauth2.googleapis.com/token',
};
const refused = (code: number, status: string, message: string): StubAnswer => [code, { error: { code, status, message } }];

/** Google Cloud KMS, the authority and the metadata server on loopback, as their documentation describes them. */
async function googleMock() {
  const keys = new KeysOfAProvider('one', 'two');
  const state = { nowMs: 1_800_000_000_000, issued: 0, valid: new Set<string>(), answer: undefined as StubAnswer | undefined };
  const issue = (): StubAnswer => {
    state.issued += 1;
    state.valid.add(`ya29.${state.issued}`);
    return [200, { access_token: `ya29.${state.issued}`, expires_in: 3599, token_type: 'Bearer' }];
  };
  const authority = await stubProvider(({ method, path, text }) => {
    const form = new URLSearchParams(text);
    const [head = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.');
    const json = (part: string): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString() || '{}');
    const { iss, aud, scope, iat, exp } = json(claims);
    const nowS = Math.floor(state.nowMs / 1000);
    const isValid =
      method === 'POST' &&
      path === '/token' &&
      form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer' &&
      json(head)['alg'] === 'RS256' &&
      json(head)['kid'] === 'key-7' &&
      iss === account.client_email &&
      aud === account.token_uri &&
      scope === 'https://www.googleapis.com/auth/cloudkms' &&
      Number(iat) === nowS &&
      Number(exp) > nowS &&
      Number(exp) <= nowS + 3600 &&
      createVerify('RSA-SHA256').update(`${head}.${claims}`).verify(pair.publicKey, signature, 'base64url');
    return isValid ? issue() : [400, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' }];
  });
  const metadata = await stubProvider(({ path, headers }) =>
    path === '/computeMetadata/v1/instance/service-accounts/default/token' && headers['metadata-flavor'] === 'Google'
      ? issue()
      : [403, {}],
  );
  const service = await stubProvider(({ method, path, headers, body }) => {
    if (state.answer !== undefined) return state.answer;
    if (!state.valid.has(String(headers.authorization).replace(/^Bearer /, '')))
      return refused(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.');
    const [, parent, name = '', operation] =
      /^\/v1\/(projects\/project-1\/locations\/global\/keyRings\/ring\/cryptoKeys\/([^/:]+)):(encrypt|decrypt)$/.exec(path) ?? [];
    const version = keys.newest(name);
    if (method !== 'POST' || version === undefined) return refused(404, 'NOT_FOUND', `CryptoKey ${name} not found.`);
    const context = String(body['additionalAuthenticatedData']);
    if (operation === 'encrypt') {
      const ciphertext = keys.encrypt(name, Buffer.from(String(body['plaintext']), 'base64'), context);
      return [200, { name: `${parent}/cryptoKeyVersions/${version}`, ciphertext: ciphertext.toString('base64') }];
    }
    const plaintext = keys.decrypt(name, Buffer.from(String(body['ciphertext']), 'base64'), context);
    if (plaintext === undefined) return refused(400, 'INVALID_ARGUMENT', 'Decryption failed: the ciphertext is invalid.');
    return [200, { plaintext: plaintext.toString('base64') }];
  });
  const folder = mkdtempSync(join(tmpdir(), 'transitd-google-'));
  const credentialsFile = join(folder, 'account.json');
  const write = (content: unknown): void =>
    writeFileSync(credentialsFile, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 });
  write(account);
  const connect = connectTo({
    'https://oauth2.googleapis.com': () => authority.address,
    'http://metadata.google.internal': () => metadata.address,
    'https://cloudkms.googleapis.com': () => service.address,
  });
  const sealOf = (crypto_key: string, more: object = { credentials_file: credentialsFile }): SealBackend =>
    cloudSeal(
      { type: 'gcpckms', project: 'project-1', region: 'global', key_ring: 'ring', crypto_key, ...more },
      { env: {}, connect, nowMs: () => state.nowMs },
    );
  const close = async (): Promise<void> => {
    await Promise.all([authority.close(), metadata.close(), service.close()]);
    rmSync(folder, { recursive: true });
  };
  return { state, keys, sealOf, write, close };
}

describeContract('gcpckms', async () => {
  const mock = await googleMock();
  return {
    seal: mock.sealOf('one'),
    otherKey: mock.sealOf('two'),
    secrets: [privateKey.slice(40, 80), 'ya29.1'],
    rotate: () => mock.keys.rotate('one'),
    behave: (behavior) => {
      mock.state.answer = (
        {
          serves: undefined,
          away: (res) => void res.destroy(),
          refuses: refused(403, 'PERMISSION_DENIED', 'Permission denied on resource.'),
          throttles: refused(429, 'RESOURCE_EXHAUSTED', 'Quota exceeded.'),
          garbles: [200, { name: 'x', ciphertext: '' }],
        } as const satisfies Record<string, StubAnswer | undefined>
      )[behavior];
    },
    close: mock.close,
  };
}, ['draws']);

describe('a gcpckms seal', () => {
  let mock: Awaited<ReturnType<typeof googleMock>>;
  beforeEach(async () => {
    mock = await googleMock();
  });
  afterEach(() => mock.close());

  it('is known by the version of its key', async () => {
    const path = 'projects/project-1/locations/global/keyRings/ring/cryptoKeys/one/cryptoKeyVersions';
    expect((await mock.sealOf('one').wrap(key)).keyId).to.equal(`${path}/1`);
    mock.keys.rotate('one');
    expect((await mock.sealOf('one').wrap(key)).keyId).to.equal(`${path}/2`);
  });

  it('uses the service account of the instance without a file', async () => {
    await mock.sealOf('one', {}).wrap(key);
    expect(mock.state.issued).to.equal(1);
  });

  it('keeps its token until five minutes before its end, and gets another one when it is refused', async () => {
    const seal = mock.sealOf('one');
    await seal.wrap(key);
    mock.state.nowMs += 3_200_000;
    await seal.wrap(key);
    expect(mock.state.issued).to.equal(1);
    mock.state.nowMs += 200_000;
    await seal.wrap(key);
    expect(mock.state.issued).to.equal(2);
    mock.state.valid.clear();
    expect((await providerErrorOf(seal.wrap(key))).failure).to.equal('permission');
    await seal.wrap(key);
  });

  for (const [what, content, says] of [
    ['no JSON', privateKey, /seal.credentials_file cannot be read: it is not JSON/],
    ['the key of a user', { ...account, type: 'authorized_user' }, /does not contain the key of a service account/],
    ['a token address without TLS', { ...account, token_uri: 'http://oauth2.googleapis.com/token' }, /does not contain the key/],
    [
      'a broken key',
      { ...account, private_key: '-----BEGIN PRIVATE KEY-----\nAAAA\n' },
      /the private key of the service account cannot be used/,
    ],
    [
      'the key of another account',
      { ...account, client_email: 'other@project-1' },
      /the authority https:\/\/oauth2.googleapis.com gives no token: status 400: invalid_grant: Invalid JWT Signature./,
    ],
  ] as const)
    it(`says that its file has ${what}, and shows nothing of the key`, async () => {
      mock.write(content);
      const error = await providerErrorOf(mock.sealOf('one').wrap(key));
      expect(error.failure).to.equal('permission');
      expect(error.message).to.match(says).and.not.contain(privateKey.slice(40, 80));
    });

  it('says that the version is disabled, and which one encrypted', async () => {
    const seal = mock.sealOf('one');
    const wrapped = await seal.wrap(key);
    mock.state.answer = refused(400, 'FAILED_PRECONDITION', 'The version is not enabled, current state is: DISABLED.');
    const error = await providerErrorOf(seal.unwrap(wrapped));
    expect(error.failure).to.equal('wrong_key');
    expect(error.message).to.match(
      /encrypted by .*cryptoKeyVersions\/1 cannot use the key for this: status 400: FAILED_PRECONDITION: The version/,
    );
  });

  it('judges an error with an unknown name by its status, also if the name is one of JavaScript', async () => {
    for (const name of ['UNHEARD_OF', 'constructor', 'toString', '__proto__']) {
      mock.state.answer = refused(429, name, 'message');
      expect((await providerErrorOf(mock.sealOf('one').wrap(key))).failure).to.equal('throttled');
    }
  });
});
