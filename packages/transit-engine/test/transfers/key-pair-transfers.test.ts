import { constants, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, privateDecrypt } from 'node:crypto';
import { expect } from 'chai';
import { unwrapKey } from '../../src/algorithms/key-wrap.ts';
import type { ImportKeyRequest, TransitEngine } from '../../src/index.ts';
import { anything, contextOne, decryptOne, everything, fox, newEngine, refusalOf, secret, storedVersion } from '../fixtures.ts';
import { storeWithWrappingKey, wrapped } from './wrapped.ts';

interface Pair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const make: Readonly<Record<string, () => Pair>> = {
  ed25519: () => generateKeyPairSync('ed25519'),
  'ecdsa-p256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'ecdsa-p384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  'ecdsa-p521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  'rsa-2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
};
const types = Object.keys(make);
const pairs = new Map<string, Pair>();

/** One pair per type for all tests. */
function pairOf(type: string): Pair {
  const pair = pairs.get(type) ?? make[type]?.();
  if (pair === undefined) throw new Error(`no pair of type ${type}`);
  pairs.set(type, pair);
  return pair;
}

const pkcs8 = ({ privateKey }: Pair): Buffer => privateKey.export({ type: 'pkcs8', format: 'der' });
const spkiPem = ({ publicKey }: Pair): string => publicKey.export({ type: 'spki', format: 'pem' }).toString();

async function importing() {
  const { engine, store } = newEngine({ store: await storeWithWrappingKey() });
  const publicPem = await engine.transfers.wrappingKey();
  const wrap = (der: Uint8Array): string => wrapped(publicPem, der);
  const take = (name: string, der: Uint8Array, request: ImportKeyRequest) =>
    engine.transfers.importKey(name, { ciphertext: wrap(der), ...request });
  return { engine, store, wrap, take };
}

async function signatureOf(engine: TransitEngine, name: string): Promise<string> {
  const reply = await engine.signing.sign(name, { input: fox });
  if ('results' in reply) throw new Error('the request was no batch');
  return reply.signature;
}

async function shown(engine: TransitEngine, name: string, exportType: string): Promise<string[]> {
  const { versions } = await engine.transfers.exportKey(name, { exportType });
  return versions.map(({ form, material }) => Buffer.from(material).toString(form === 'text' ? 'utf8' : form));
}

describe('a key pair', () => {
  for (const type of types) {
    it(`of type ${type} is imported as PKCS#8, signs, and is exported unchanged`, async () => {
      const { engine, take } = await importing();
      const pair = pairOf(type);
      expect(await take('k', pkcs8(pair), { type, exportable: true })).to.deep.equal([]);
      const signature = await signatureOf(engine, 'k');
      expect(await engine.signing.verify('k', { input: fox, signature })).to.deep.equal({ valid: true });
      const [exported = ''] = await shown(engine, 'k', 'signing-key');
      const privateKey =
        type === 'ed25519'
          ? createPrivateKey({
              key: Buffer.concat([
                Buffer.from('302e020100300506032b657004220420', 'hex'),
                Buffer.from(exported, 'base64').subarray(0, 32),
              ]),
              format: 'der',
              type: 'pkcs8',
            })
          : createPrivateKey(exported);
      expect(privateKey.equals(pair.privateKey)).to.equal(true);
      const [version] = (await engine.readKey('k')).versions;
      if (type !== 'ed25519') expect(createPublicKey(version?.pair?.publicKey ?? '').equals(pair.publicKey)).to.equal(true);
    });

    it(`of type ${type} with only a public half verifies, but neither signs nor exports a private half`, async () => {
      const { engine, take } = await importing();
      const pair = pairOf(type);
      await take('whole', pkcs8(pair), { type });
      const signature = await signatureOf(engine, 'whole');
      await engine.transfers.importKey('k', { type, publicKey: spkiPem(pair), exportable: true });
      expect(await engine.signing.verify('k', { input: fox, signature })).to.deep.equal({ valid: true });
      expect((await refusalOf(engine.signing.sign('k', { input: fox }))).message).to.equal(
        'requested version for signing does not contain a private part',
      );
      expect(await shown(engine, 'k', 'signing-key')).to.deep.equal(['']);
      expect(await shown(engine, 'k', 'public-key')).to.deep.equal(await shown(engine, 'whole', 'public-key'));
      expect((await engine.signing.hmac('k', { input: fox })) as object).to.have.property('hmac');
    });

    it(`of type ${type} can get its matching private half later, in the same version`, async () => {
      const { engine, wrap } = await importing();
      const pair = pairOf(type);
      await engine.transfers.importKey('k', { type, publicKey: spkiPem(pair) });
      const other = make[type]?.() ?? pair;
      expect(
        (await refusalOf(engine.transfers.importVersion('k', { ciphertext: wrap(pkcs8(other)), version: 1 }))).message,
      ).to.equal('cannot import key, key pair does not match');
      await refusalOf(engine.signing.sign('k', { input: fox })); // now the cache holds the public half
      await engine.transfers.importVersion('k', { ciphertext: wrap(pkcs8(pair)) });
      expect((await engine.readKey('k')).latestVersion).to.equal(1);
      expect(await engine.signing.verify('k', { input: fox, signature: await signatureOf(engine, 'k') })).to.deep.equal({
        valid: true,
      });
      for (const [request, message] of [
        [{ ciphertext: wrap(pkcs8(pair)), version: 1 }, 'private key imported, key version cannot be updated'],
        [{ publicKey: spkiPem(pair), version: 1 }, 'cannot add a public key to a key version that already has a public key set'],
        [{ ciphertext: wrap(pkcs8(pair)), version: 2 }, 'no such key version'],
      ] as const) {
        expect((await refusalOf(engine.transfers.importVersion('k', request))).message).to.equal(message);
      }
      await engine.transfers.importVersion('k', { ciphertext: wrap(pkcs8(pair)) });
      await engine.transfers.importVersion('k', { publicKey: spkiPem(other) });
      await engine.transfers.importVersion('k', { ciphertext: wrap(pkcs8(pair)) });
      expect((await engine.readKey('k')).latestVersion, 'what completes nothing is a new version').to.equal(4);
    });

    it(`of type ${type} can be wrapped for another service, and works there`, async () => {
      const { engine } = await importing();
      const there = (await importing()).engine;
      await engine.transfers.importKey('there', { type: 'rsa-4096', publicKey: await there.transfers.wrappingKey() });
      await engine.createKey('k', { type, exportable: true });
      await engine.rotateKey('k');
      for (const hashFunction of [undefined, 'SHA1', 'sha512']) {
        const { versions } = await engine.transfers.wrapForTransfer('k', { destination: 'there', hashFunction });
        expect(versions.map(({ version }) => version)).to.deep.equal([1, 2]);
        const name = `k-${hashFunction}`;
        const [first, second] = versions.map(({ wrapped: ciphertext }) => ({ ciphertext, hashFunction }));
        await there.transfers.importKey(name, { type, ...first });
        await there.transfers.importVersion(name, { ...second });
        expect(await there.signing.verify(name, { input: fox, signature: await signatureOf(engine, 'k') })).to.deep.equal({
          valid: true,
        });
      }
    });

    it(`of type ${type} survives backup and restore, and rotates`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { type, exportable: true, allowPlaintextBackup: true });
      const signature = await signatureOf(engine, 'k');
      await engine.rotateKey('k');
      const before = await shown(engine, 'k', 'public-key');
      const backup = (await engine.transfers.backupKey('k')).toString('base64');
      const there = newEngine().engine;
      await there.transfers.restoreKey({ backup });
      expect(await shown(there, 'k', 'public-key')).to.deep.equal(before);
      expect(await there.signing.verify('k', { input: fox, signature })).to.deep.equal({ valid: true });
      await there.rotateKey('k');
      expect((await there.readKey('k')).versions.map(({ pair }) => pair?.publicKey)).to.have.length(3);
    });
  }

  it('stores its public key in its record, and never shows its secrets in a view', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', { type: 'ed25519' });
    const { material, publicKey } = await storedVersion(store, 'k', 1);
    expect(Buffer.from(material.subarray(32))).to.deep.equal(Buffer.from(publicKey ?? []));
    expect(JSON.stringify(await engine.readKey('k'))).to.not.contain(Buffer.from(material.subarray(0, 30)).toString('base64'));
  });

  it('for derivation requires its private half, and signs like the exported key', async () => {
    const { engine, take } = await importing();
    const pair = pairOf('ed25519');
    await take('k', pkcs8(pair), { type: 'ed25519', derived: true, context: contextOne });
    const first = await engine.signing.sign('k', { input: fox, context: contextOne });
    expect(await engine.signing.sign('k', { input: fox, context: contextOne })).to.deep.equal(first);
    const request = { type: 'ed25519', derived: true, context: contextOne, publicKey: spkiPem(pair) };
    expect((await refusalOf(engine.transfers.importKey('p', request))).message).to.contain('unable to import only public key');
  });

  it('of RSA with only a public half encrypts, and refuses to decrypt and to rewrap', async () => {
    const { engine } = await importing();
    const pair = pairOf('rsa-2048');
    await engine.transfers.importKey('k', { type: 'rsa-2048', publicKey: spkiPem(pair) });
    const reply = await engine.ciphertexts.encrypt('k', { ...anything, plaintext: fox });
    if ('results' in reply) throw new Error('the request was no batch');
    const key = { key: pair.privateKey, oaepHash: 'sha256', padding: constants.RSA_PKCS1_OAEP_PADDING };
    expect(privateDecrypt(key, Buffer.from(reply.ciphertext.slice(7), 'base64')).toString('base64')).to.equal(fox);
    for (const request of [engine.ciphertexts.decrypt('k', reply), engine.ciphertexts.rewrap('k', reply)]) {
      expect((await refusalOf(request)).message).to.equal(
        'cannot decrypt ciphertext, key version does not have a private counterpart',
      );
    }
  });

  it('is imported by its private half, with a warning if the public half is given too', async () => {
    const { engine, take } = await importing();
    const pair = pairOf('ecdsa-p256');
    expect(await take('k', pkcs8(pair), { type: 'ecdsa-p256', publicKey: 'anything' })).to.have.length(1);
    expect(await signatureOf(engine, 'k')).to.match(/^svc:v1:/);
  });

  it('of RSA restricted to PSS is imported like another RSA key', async () => {
    const { engine, store, take } = await importing();
    const { privateKey } = generateKeyPairSync('rsa-pss', { modulusLength: 2048 });
    await take('k', privateKey.export({ type: 'pkcs8', format: 'der' }), { type: 'rsa-2048' });
    const { material } = await storedVersion(store, 'k', 1);
    const stored = createPrivateKey({ key: Buffer.from(material), format: 'der', type: 'pkcs8' });
    expect(stored.asymmetricKeyType).to.equal('rsa');
    expect(await engine.signing.verify('k', { input: fox, signature: await signatureOf(engine, 'k') })).to.deep.equal({
      valid: true,
    });
  });

  it('of a curve in formats of other programs is converted to the stored format', async () => {
    const { store, engine, wrap } = await importing();
    const { privateKey } = pairOf('ecdsa-p256');
    const compressed = generateCompressed(privateKey);
    await engine.transfers.importKey('k', { type: 'ecdsa-p256', publicKey: compressed });
    await engine.transfers.importVersion('k', { ciphertext: wrap(withoutPoint(privateKey)) });
    expect((await engine.readKey('k')).latestVersion, 'the halves match').to.equal(1);
    const { material } = await storedVersion(store, 'k', 1);
    expect(Buffer.from(material).equals(privateKey.export({ type: 'pkcs8', format: 'der' }))).to.equal(true);
  });
});

describe('a key wrapped for another service', () => {
  it('contains the material of a symmetric key, under destinations of any size', async () => {
    const { engine } = newEngine();
    const { privateKey, publicKey } = pairOf('rsa-2048');
    const { engine: own } = await importing();
    await own.transfers.importKey('there', {
      type: 'rsa-2048',
      publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    });
    await own.createKey('k', { type: 'aes256-gcm96', exportable: true });
    const { versions } = await own.transfers.wrapForTransfer('k', { destination: 'there', version: 'latest' });
    const bytes = Buffer.from(versions[0]?.wrapped ?? '', 'base64');
    const outer = { key: privateKey, oaepHash: 'sha256', padding: constants.RSA_PKCS1_OAEP_PADDING };
    const material = unwrapKey(secret(privateDecrypt(outer, bytes.subarray(0, 256))), bytes.subarray(256));
    expect(material.toString('base64')).to.equal((await shown(own, 'k', 'encryption-key'))[0]);
    engine.close();
  });

  for (const [source, request, message] of [
    ['k', { destination: 'missing' }, 'no such destination key to export to'],
    ['missing', { destination: 'rsa' }, 'no such source key for export'],
    ['closed', { destination: 'rsa' }, 'key is not exportable'],
    ['k', { destination: 'ed' }, 'unsupported key type in use; must be a rsa key'],
    ['k', { destination: 'k' }, 'message signing not supported for key type aes256-gcm96'],
    ['k', { destination: 'rsa', version: '9' }, 'version does not exist or cannot be found'],
    ['k', { destination: 'rsa', version: 'x' }, 'invalid key version'],
    ['k', { destination: 'rsa', hashFunction: 'MD5' }, 'unknown hash function: MD5'],
    ['public', { destination: 'rsa' }, 'key version does not have a private counterpart'],
  ] as const) {
    it(`is refused for ${source} ${JSON.stringify(request)}: ${message}`, async () => {
      const { engine } = newEngine();
      const publicKey = spkiPem(pairOf('rsa-2048'));
      await engine.createKey('k', { exportable: true });
      await engine.createKey('closed', {});
      await engine.createKey('ed', { type: 'ed25519' });
      await engine.transfers.importKey('rsa', { type: 'rsa-2048', publicKey });
      await engine.transfers.importKey('public', { type: 'rsa-2048', publicKey, exportable: true });
      expect((await refusalOf(engine.transfers.wrapForTransfer(source, request))).message).to.equal(message);
    });
  }
});

describe('an RSA key', () => {
  it('is exported as PKCS#1 for encryption and for signing', async () => {
    const { engine, take } = await importing();
    const pair = pairOf('rsa-2048');
    await take('k', pkcs8(pair), { type: 'rsa-2048', exportable: true });
    const pem = pair.privateKey.export({ type: 'pkcs1', format: 'pem' });
    expect(await shown(engine, 'k', 'encryption-key')).to.deep.equal([pem]);
    expect(await shown(engine, 'k', 'signing-key')).to.deep.equal([pem]);
  });

  it('can be created by an encryption, and decrypts and rewraps in both paddings', async () => {
    const { engine } = newEngine();
    for (const paddingScheme of ['', 'oaep', 'pkcs1v15']) {
      const reply = await engine.ciphertexts.encrypt('k', { ...anything, type: 'rsa-2048', plaintext: fox, paddingScheme });
      if ('results' in reply) throw new Error('the request was no batch');
      expect(await decryptOne(engine, 'k', { ciphertext: reply.ciphertext, paddingScheme })).to.deep.equal({ plaintext: fox });
      const anew = await engine.ciphertexts.rewrap('k', { ciphertext: reply.ciphertext, decryptPaddingScheme: paddingScheme });
      if ('results' in anew) throw new Error('the request was no batch');
      expect(await decryptOne(engine, 'k', { ciphertext: anew.ciphertext })).to.deep.equal({ plaintext: fox });
    }
    const datakey = await engine.ciphertexts.datakey('k', { kind: 'plaintext', paddingScheme: 'pkcs1v15' });
    expect((await decryptOne(engine, 'k', { ciphertext: datakey.ciphertext, paddingScheme: 'pkcs1v15' })).plaintext).to.equal(
      datakey.plaintext,
    );
  });

  it('cannot be created as a derived key by an encryption', async () => {
    const { engine, store } = newEngine();
    const before = await everything(store);
    await refusalOf(engine.ciphertexts.encrypt('k', { ...anything, type: 'rsa-2048', plaintext: fox, context: contextOne }));
    expect(await everything(store)).to.deep.equal(before);
  });

  it('refuses associated data, long plaintexts, and ciphertexts of other keys', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'rsa-2048' });
    const of = (bytes: number): string => Buffer.alloc(bytes).toString('base64');
    for (const [request, message] of [
      [{ plaintext: fox, associatedData: fox }, "'[0].associated_data' provided for non-AEAD cipher suite rsa-2048"],
      [{ plaintext: of(191) }, 'failed to RSA encrypt the plaintext: crypto/rsa: message too long for RSA key size'],
      [
        { plaintext: of(246), paddingScheme: 'pkcs1v15' },
        'failed to RSA encrypt the plaintext: crypto/rsa: message too long for RSA key size',
      ],
      [{ plaintext: fox, paddingScheme: 'x' }, "'[0].padding_scheme' invalid: unknown padding scheme: x"],
      [{ plaintext: fox, nonce: of(12) }, 'provided nonce not allowed for this key'],
    ] as const) {
      expect((await refusalOf(engine.ciphertexts.encrypt('k', { ...anything, ...request }))).message).to.equal(message);
    }
    for (const paddingScheme of ['oaep', 'pkcs1v15']) {
      for (const bytes of [0, 1, 255, 257]) {
        const refusal = await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext: `svc:v1:${of(bytes)}`, paddingScheme }));
        expect(refusal.message).to.equal('failed to RSA decrypt the ciphertext: crypto/rsa: decryption error');
      }
    }
  });
});

/** SubjectPublicKeyInfo in PEM with the compressed point. */
function generateCompressed(privateKey: KeyObject): string {
  const { x = '', y = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  const odd = (Buffer.from(y, 'base64url').at(-1) ?? 0) & 1;
  const head = Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex');
  const der = Buffer.concat([head, Uint8Array.of(2 + odd), Buffer.from(x, 'base64url')]);
  return `-----BEGIN PUBLIC KEY-----\n${der.toString('base64')}\n-----END PUBLIC KEY-----\n`;
}

/** PKCS#8 whose ECPrivateKey contains the private number without the public point. */
function withoutPoint(privateKey: KeyObject): Buffer {
  const { d = '' } = privateKey.export({ format: 'jwk' });
  const head = Buffer.from('3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420', 'hex');
  return Buffer.concat([head, Buffer.from(d, 'base64url')]);
}
