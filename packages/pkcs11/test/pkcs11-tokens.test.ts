// @live
import { execFileSync } from 'node:child_process';
import {
  constants,
  createDecipheriv,
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  verify,
} from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Mechanism, Pkcs11Failure, Pkcs11Tokens, type TokenKey } from '../src/index.ts';
import { needsToken, softhsmLibrary, TokenFolder } from './softhsm.ts';

const [pin, otherPin] = ['1234', '5678'];
const message = Buffer.from('the quick brown fox');
const digest = (hash: string): Buffer => createHash(hash).update(message).digest();

async function failureOf(call: Promise<unknown>): Promise<Pick<Pkcs11Failure, 'code' | 'message'>> {
  try {
    await call;
  } catch (error) {
    if (error instanceof Pkcs11Failure) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error('the call did not fail');
}
const codeOf = async (call: Promise<unknown>): Promise<string> => (await failureOf(call)).code;

describe('keys in a SoftHSM token', () => {
  let folder: TokenFolder;
  let tokens: Pkcs11Tokens;
  let count = 0;

  const newTokens = (): Pkcs11Tokens =>
    new Pkcs11Tokens({
      deadlineMs: 120_000, // the deadline has tests of its own; here a busy machine must not end a call
      libraries: [
        { name: 'hsm', path: softhsmLibrary ?? '' },
        { name: 'same', path: softhsmLibrary ?? '' },
        { name: 'none', path: '/nowhere/libnone.so' },
        { name: 'text', path: join(import.meta.dirname, 'softhsm.ts') },
      ],
    });
  const keyOf = (mechanism: Mechanism, given: Partial<TokenKey> = {}): TokenKey => ({
    library: 'hsm',
    tokenLabel: 'first',
    pin,
    keyLabel: `key-${++count}`,
    mechanism,
    ...given,
  });
  async function publicKeyOf(key: TokenKey): Promise<KeyObject> {
    const der = await tokens.describe(key);
    if (der === undefined) throw new Error('no public half');
    return createPublicKey({ key: der, format: 'der', type: 'spki' });
  }

  before(function () {
    needsToken(this);
    folder = new TokenFolder();
    folder.addToken({ label: 'first', pin });
    folder.addToken({ label: 'second', pin: otherPin });
    folder.addToken({ label: 'twin', pin });
    folder.addToken({ label: 'twin', pin });
  });
  beforeEach(() => {
    tokens = newTokens();
  });
  afterEach(() => tokens?.close());
  after(() => folder?.remove());

  for (const bits of [2048, 3072]) {
    for (const hash of ['sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha3-256', 'sha3-512']) {
      if (bits === 3072 && hash !== 'sha256') continue;
      it(`RSA of ${bits} bits signs PKCS#1 v1.5 with ${hash}, which node:crypto verifies`, async () => {
        const key = keyOf('CKM_RSA_PKCS');
        await tokens.generate(key, { bits });
        const publicKey = await publicKeyOf(key);
        expect(publicKey.asymmetricKeyDetails?.modulusLength).to.equal(bits);
        const signature = await tokens.sign(key, { digest: digest(hash), hash });
        expect(verify(hash, message, publicKey, signature)).to.equal(true);
      });
    }
  }

  it('draws random bytes of the token', async () => {
    const key = keyOf('CKM_AES_GCM'); // no such key exists
    for (const bytes of [1, 1024]) expect(await tokens.random(key, bytes)).to.have.lengthOf(bytes);
    expect(await tokens.random(key, 32)).to.not.deep.equal(await tokens.random(key, 32));
  });

  it('requires an AES key of 256 bits for a seal, and says what the token has instead', async () => {
    for (const bits of [128, 192, 256]) {
      const key = keyOf('CKM_AES_GCM');
      await tokens.generate(key, { bits });
      if (bits === 256) await tokens.requireAes256(key);
      else
        expect(await failureOf(tokens.requireAes256(key))).to.deep.equal({
          code: 'key_unsuitable',
          message: `the key in the token has ${bits} bits: it must be an AES key of 256 bits`,
        });
    }
    const pair = keyOf('CKM_ECDSA');
    await tokens.generate(pair, { curve: 'P256' });
    expect(await codeOf(tokens.requireAes256({ ...pair, mechanism: 'CKM_AES_GCM' }))).to.equal('key_unsuitable');
    expect(await codeOf(tokens.requireAes256(keyOf('CKM_AES_GCM')))).to.equal('key_not_found');
  });

  for (const { hash, saltBytes } of [
    { hash: 'sha256', saltBytes: 32 },
    { hash: 'sha256', saltBytes: 0 },
    { hash: 'sha384', saltBytes: 20 },
    { hash: 'sha512', saltBytes: 64 },
  ]) {
    it(`RSA signs PSS with ${hash} and a salt of ${saltBytes} bytes`, async () => {
      const key = keyOf('CKM_RSA_PKCS_PSS');
      await tokens.generate(key, { bits: 2048 });
      const signature = await tokens.sign(key, { digest: digest(hash), hash, saltBytes });
      const padding = constants.RSA_PKCS1_PSS_PADDING;
      expect(verify(hash, message, { key: await publicKeyOf(key), padding, saltLength: saltBytes }, signature)).to.equal(true);
    });
  }

  for (const { curve, name, bytes } of [
    { curve: 'P256', name: 'prime256v1', bytes: 32 },
    { curve: 'P384', name: 'secp384r1', bytes: 48 },
    { curve: 'P521', name: 'secp521r1', bytes: 66 },
  ] as const) {
    for (const hash of ['sha256', 'sha512']) {
      it(`ECDSA on ${curve} signs ${hash} as r ‖ s`, async () => {
        const key = keyOf('CKM_ECDSA');
        await tokens.generate(key, { curve });
        const publicKey = await publicKeyOf(key);
        expect(publicKey.asymmetricKeyDetails?.namedCurve).to.equal(name);
        const signature = await tokens.sign(key, { digest: digest(hash), hash });
        expect(signature).to.have.lengthOf(2 * bytes);
        expect(verify(hash, message, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)).to.equal(true);
      });
    }
  }

  it('signs input encoded by the caller, by PKCS#1 v1.5 without a hash', async () => {
    const key = keyOf('CKM_RSA_PKCS');
    await tokens.generate(key, { bits: 2048 });
    const prefix = Buffer.from('3031300d060960864801650304020105000420', 'hex');
    const signature = await tokens.sign(key, { digest: Buffer.concat([prefix, digest('sha256')]), hash: null });
    expect(verify('sha256', message, await publicKeyOf(key), signature)).to.equal(true);
  });

  describe('AES-GCM', () => {
    const [iv, associatedData] = [Buffer.alloc(12, 7), Buffer.from('bound')];
    for (const bits of [128, 256]) {
      it(`encrypts and decrypts under ${bits} bits`, async () => {
        const key = keyOf('CKM_AES_GCM');
        await tokens.generate(key, { bits });
        expect(await tokens.describe(key)).to.equal(undefined);
        for (const input of [message, Buffer.alloc(0), Buffer.alloc(100_000, 1)]) {
          const ciphertext = await tokens.encrypt(key, { input, iv, associatedData });
          expect(ciphertext).to.have.lengthOf(input.length + 16);
          expect((await tokens.decrypt(key, { input: ciphertext, iv, associatedData })).equals(input)).to.equal(true);
        }
      });
    }

    it('is compatible with node:crypto, tested with an imported key', async () => {
      const material = Buffer.alloc(16, 9);
      const file = join(folder.path, 'aes.key');
      writeFileSync(file, material);
      const args = ['--import', file, '--aes', '--token', 'first', '--label', 'outside', '--id', 'abcd', '--pin', pin];
      execFileSync('softhsm2-util', args, { stdio: 'pipe' });
      const key = keyOf('CKM_AES_GCM', { keyLabel: 'outside', keyId: Buffer.from('abcd', 'hex') });
      const ciphertext = await tokens.encrypt(key, { input: message, iv, associatedData });
      const decipher = createDecipheriv('aes-128-gcm', material, iv).setAAD(associatedData).setAuthTag(ciphertext.subarray(-16));
      expect(Buffer.concat([decipher.update(ciphertext.subarray(0, -16)), decipher.final()]).equals(message)).to.equal(true);
    });

    it('does not decrypt modified or truncated ciphertexts, nor with other associated data', async () => {
      const key = keyOf('CKM_AES_GCM');
      await tokens.generate(key, { bits: 256 });
      const good = { input: await tokens.encrypt(key, { input: message, iv, associatedData }), iv, associatedData };
      const altered = Buffer.from(good.input);
      altered[3] = (altered[3] ?? 0) ^ 1;
      for (const [name, wrong] of Object.entries({
        altered: { ...good, input: altered },
        cut: { ...good, input: good.input.subarray(0, -1) },
        'shorter than a tag': { ...good, input: good.input.subarray(0, 10) },
        empty: { ...good, input: Buffer.alloc(0) },
        'another vector': { ...good, iv: Buffer.alloc(12) },
        'other data': { ...good, associatedData: Buffer.from('else') },
      })) {
        expect(await codeOf(tokens.decrypt(key, wrong)), name).to.equal('not_authentic');
      }
      expect((await tokens.decrypt(key, good)).equals(message), 'the session is good after that').to.equal(true);
    });

    it('only encrypts; the other mechanisms only sign', async () => {
      const [aes, ec] = [keyOf('CKM_AES_GCM'), keyOf('CKM_ECDSA')];
      await tokens.generate(aes, {});
      await tokens.generate(ec, {});
      expect(await codeOf(tokens.sign(aes, { digest: digest('sha256'), hash: 'sha256' }))).to.be.oneOf([
        'not_possible',
        'key_not_found',
      ]);
      expect(await codeOf(tokens.encrypt(ec, { input: message, iv, associatedData }))).to.equal('not_possible');
    });
  });

  /** Lets another process access the objects with that label in the first token. */
  function asked(label: string, script: string): unknown {
    const session = `const p = require('pkcs11js'); const t = new p.PKCS11(); t.load(process.argv[1]); t.C_Initialize();
      const slot = t.C_GetSlotList(true).find((s) => t.C_GetTokenInfo(s).label.trim() === 'first');
      const session = t.C_OpenSession(slot, p.CKF_SERIAL_SESSION | p.CKF_RW_SESSION); t.C_Login(session, p.CKU_USER, '${pin}');
      const find = (...more) => { t.C_FindObjectsInit(session, [{ type: p.CKA_LABEL, value: process.argv[2] }, ...more]);
        const found = t.C_FindObjects(session, 9); t.C_FindObjectsFinal(session); return found; };
      ${script}`;
    const out = execFileSync(process.execPath, ['-e', session, softhsmLibrary ?? '', label], { cwd: import.meta.dirname });
    return JSON.parse(out.toString());
  }

  it('refuses a key without its public half, with an error that causes no generation', async () => {
    const key = keyOf('CKM_ECDSA');
    await tokens.generate(key, {});
    asked(
      key.keyLabel ?? '',
      'find({ type: p.CKA_CLASS, value: p.CKO_PUBLIC_KEY }).forEach((o) => t.C_DestroyObject(session, o)); console.log(0)',
    );
    tokens.close();
    tokens = newTokens();
    expect(await failureOf(tokens.describe(key))).to.deep.equal({
      code: 'key_unsuitable',
      message: 'the public half of the key is not in the token',
    });
  });

  it('generates keys that cannot leave the token', async () => {
    const key = keyOf('CKM_AES_GCM', { keyId: Buffer.from('0a0b', 'hex') });
    await tokens.generate(key, {});
    // Another process asks the token itself.
    const [flags, value] = asked(
      key.keyLabel ?? '',
      `const [key] = find();
      const flags = t.C_GetAttributeValue(session, key, ['CKA_SENSITIVE', 'CKA_EXTRACTABLE', 'CKA_PRIVATE'].map((n) => ({ type: p[n] })));
      let value;
      try { value = t.C_GetAttributeValue(session, key, [{ type: p.CKA_VALUE }])[0].value.length; } catch (e) { value = e.message; }
      console.log(JSON.stringify([flags.map(({ value }) => value[0]), value]));`,
    ) as [number[], unknown];
    expect(flags).to.deep.equal([1, 0, 1]);
    expect(value).to.match(/CKR_ATTRIBUTE_SENSITIVE/);
  });

  it('finds a key only by its label, its id or both', async () => {
    const keyId = Buffer.from('1122', 'hex');
    const key = keyOf('CKM_ECDSA', { keyId });
    await tokens.generate(key, { curve: 'P256' });
    const der = await tokens.describe(key);
    const { keyLabel: label = '', ...rest } = key;
    const { keyId: _, ...unnumbered } = key;
    expect(await tokens.describe(rest)).to.deep.equal(der);
    expect(await tokens.describe(unnumbered)).to.deep.equal(der);
    expect(await codeOf(tokens.describe({ ...key, keyLabel: `${label}x` }))).to.equal('key_not_found');
    expect(await codeOf(tokens.describe({ ...key, mechanism: 'CKM_RSA_PKCS' })), 'of another kind').to.equal('key_not_found');
  });

  it('uses neither of two matching keys', async () => {
    const key = keyOf('CKM_ECDSA');
    await tokens.generate(key, {});
    await tokens.generate(key, {});
    expect(await codeOf(tokens.describe(key))).to.equal('ambiguous');
  });

  it('reports missing tokens, keys and libraries', async () => {
    const key = keyOf('CKM_ECDSA');
    expect(await failureOf(tokens.describe(key))).to.deep.equal({
      code: 'key_not_found',
      message: 'the key is not in the token',
    });
    expect(await codeOf(tokens.describe({ ...key, tokenLabel: 'third' }))).to.equal('token_not_found');
    expect(await codeOf(tokens.describe({ ...key, slot: 77 }))).to.equal('token_not_found');
    expect(await codeOf(tokens.describe({ ...key, tokenLabel: 'twin' }))).to.equal('ambiguous');
    expect(await codeOf(tokens.describe({ ...key, library: 'none' }))).to.equal('library_unusable');
    expect(await codeOf(tokens.describe({ ...key, library: 'text' }))).to.equal('library_unusable');
    expect(await failureOf(tokens.describe({ ...key, library: 'unknown' }))).to.deep.equal({
      code: 'library_unusable',
      message: 'no PKCS#11 library unknown is configured on this node',
    });
  });

  it('refuses unsupported hashes and continues to work', async () => {
    const key = keyOf('CKM_RSA_PKCS_PSS');
    await tokens.generate(key, { bits: 2048 });
    expect(await codeOf(tokens.sign(key, { digest: digest('sha3-256'), hash: 'sha3-256', saltBytes: 32 }))).to.equal(
      'not_possible',
    );
    expect(await codeOf(tokens.sign(key, { digest: digest('sha512'), hash: 'sha256', saltBytes: 32 }))).to.equal('not_possible');
    expect(await tokens.sign(key, { digest: digest('sha256'), hash: 'sha256', saltBytes: 32 })).to.have.lengthOf(256);
  });

  describe('the PIN', () => {
    it('is tried once if it is wrong, since tokens lock after a few', async () => {
      const key = keyOf('CKM_ECDSA', { pin: 'wrong' });
      for (let attempt = 0; attempt < 20; attempt++) expect(await codeOf(tokens.describe(key))).to.equal('pin_refused');
      const right = { ...key, pin };
      await tokens.generate(right, {});
      expect(await tokens.describe(right)).to.be.instanceOf(Uint8Array);
    });

    it('is checked for each caller, also when a session is open', async () => {
      const key = keyOf('CKM_ECDSA');
      await tokens.generate(key, {});
      expect(await codeOf(tokens.describe({ ...key, pin: 'another' }))).to.equal('pin_refused');
      expect(
        await codeOf(tokens.sign({ ...key, pin: '', library: 'same' }, { digest: digest('sha256'), hash: 'sha256' })),
      ).to.equal('pin_refused');
      expect(await tokens.describe(key), 'the right PIN still works').to.be.instanceOf(Uint8Array);
    });

    it('belongs to one token', async () => {
      expect(await codeOf(tokens.describe(keyOf('CKM_ECDSA', { tokenLabel: 'second' })))).to.equal('pin_refused');
      expect(await codeOf(tokens.describe(keyOf('CKM_ECDSA', { tokenLabel: 'second', pin: otherPin })))).to.equal(
        'key_not_found',
      );
    });

    it('is not contained in any failure', async () => {
      const secret = 'pin-of-great-value';
      const failure = await failureOf(tokens.describe(keyOf('CKM_ECDSA', { pin: secret })));
      expect(JSON.stringify(failure)).not.to.include(secret);
    });
  });

  it('makes concurrent calls to several tokens, each with its own result', async () => {
    const keys = [keyOf('CKM_ECDSA'), keyOf('CKM_ECDSA', { tokenLabel: 'second', pin: otherPin, library: 'same' })];
    const publicKeys: KeyObject[] = [];
    for (const key of keys) {
      await tokens.generate(key, { curve: 'P256' });
      publicKeys.push(await publicKeyOf(key));
    }
    const inputs = Array.from({ length: 60 }, (_, index) => Buffer.from(`message ${index}`));
    await Promise.all(
      inputs.map(async (input, index) => {
        const [key, publicKey] = [keys[index % 2], publicKeys[index % 2]];
        if (key === undefined || publicKey === undefined) throw new Error('no key');
        const signature = await tokens.sign(key, { digest: createHash('sha256').update(input).digest(), hash: 'sha256' });
        expect(verify('sha256', input, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)).to.equal(true);
      }),
    );
  });

  it('are found while another thread of the process logs out and in again', async () => {
    const [aes, rsa] = [keyOf('CKM_AES_GCM'), keyOf('CKM_RSA_PKCS')];
    await tokens.generate(aes, { bits: 256 });
    await tokens.generate(rsa, { bits: 2048 });
    const others = newTokens();
    try {
      let ended = false;
      const disturb = async (): Promise<void> => {
        // Refused by the token, so the other thread ends its session.
        while (!ended) expect(await codeOf(others.sign(rsa, { digest: Buffer.alloc(400), hash: null }))).to.equal('token_failed');
      };
      const disturbing = disturb();
      const gcm = { input: Buffer.alloc(32), iv: Buffer.alloc(12), associatedData: Buffer.alloc(1) };
      for (let calls = 0; calls < 300; calls += 1) expect(await tokens.encrypt(aes, gcm)).to.have.length(48);
      ended = true;
      await disturbing;
    } finally {
      others.close();
    }
  });

  it('ignores a key of another type in the token', async () => {
    const pem = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'pem', type: 'pkcs8' });
    const file = join(folder.path, 'rsa.pem');
    writeFileSync(file, pem);
    execFileSync('softhsm2-util', ['--import', file, '--token', 'first', '--label', 'rsa', '--id', 'ef', '--pin', pin], {
      stdio: 'pipe',
    });
    const key = keyOf('CKM_ECDSA', { keyLabel: 'rsa' });
    expect(await codeOf(tokens.describe(key))).to.equal('key_not_found');
    const signature = await tokens.sign({ ...key, mechanism: 'CKM_RSA_PKCS' }, { digest: digest('sha256'), hash: 'sha256' });
    expect(verify('sha256', message, createPublicKey(pem.toString()), signature)).to.equal(true);
  });
});
