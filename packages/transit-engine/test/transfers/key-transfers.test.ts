import { createPublicKey, randomBytes } from 'node:crypto';
import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { ImportKeyRequest, TransitEngine } from '../../src/index.ts';
import { contextOne, decryptOne, encryptOne, everything, fox, newEngine, refusalOf, storedVersion } from '../fixtures.ts';
import { storeWithWrappingKey, type Wrapping, wrapped } from './wrapped.ts';

async function importing() {
  const { engine, store, clock } = newEngine({ store: await storeWithWrappingKey() });
  const publicPem = await engine.transfers.wrappingKey();
  const wrap = (material: Uint8Array, wrapping?: Wrapping): string => wrapped(publicPem, material, wrapping);
  const take = (name: string, material: Uint8Array, request: ImportKeyRequest = {}) =>
    engine.transfers.importKey(name, { ciphertext: wrap(material), ...request });
  return { engine, store, clock, wrap, take };
}

/** Returns exported material in base64 by version. */
async function exported(engine: TransitEngine, name: string, exportType: string, version?: string) {
  const { versions } = await engine.transfers.exportKey(name, { exportType, version });
  return Object.fromEntries(versions.map((each) => [each.version, Buffer.from(each.material).toString('base64')]));
}

describe('the wrapping key', () => {
  it('is an RSA key of 4,096 bits, stored once even if two engines generate one at the same time', async () => {
    const store = memoryStore();
    const engines = [newEngine({ store }).engine, newEngine({ store }).engine];
    const asked = await Promise.all(engines.flatMap(({ transfers }) => [transfers.wrappingKey(), transfers.wrappingKey()]));
    expect(new Set(asked).size).to.equal(1);
    expect(await newEngine({ store }).engine.transfers.wrappingKey()).to.equal(asked[0]);
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey(asked[0] ?? '');
    expect([asymmetricKeyType, asymmetricKeyDetails?.modulusLength]).to.deep.equal(['rsa', 4096]);
    expect((await refusalOf(newEngine({ store }).engine.listKeys())).code, 'and is not listed').to.equal('not_found');
  });
});

describe('importing a key', () => {
  for (const [type, bytes] of [
    ['aes128-gcm96', 16],
    ['aes256-gcm96', 32],
    ['chacha20-poly1305', 32],
    ['aes128-cmac', 16],
    ['aes256-cmac', 32],
    ['hmac', 32],
    ['hmac', 512],
  ] as const) {
    it(`accepts ${bytes} bytes for ${type}, whose name is case-insensitive`, async () => {
      const { engine, store, take } = await importing();
      const material = randomBytes(bytes);
      expect(await take('k', material, { type: type.toUpperCase() })).to.deep.equal([]);
      expect(await engine.readKey('k')).to.include({
        type,
        imported: true,
        allowRotation: false,
        keySize: type === 'hmac' ? bytes : 0,
      });
      expect(Buffer.from((await storedVersion(store, 'k', 1)).material).equals(material)).to.equal(true);
    });

    it(`refuses ${bytes - 1} bytes for ${type}, and leaves nothing behind`, async () => {
      const { engine, take } = await importing();
      expect((await refusalOf(take('k', randomBytes(bytes === 512 ? 513 : bytes - 1), { type }))).message).to.equal(
        `error importing key: invalid key size ${bytes === 512 ? 513 : bytes - 1} bytes for key type ${type}`,
      );
      expect(await engine.keyExists('k')).to.equal(false);
    });
  }

  for (const hash of ['sha1', 'sha224', 'sha256', 'sha384', 'sha512']) {
    it(`accepts ${hash} for RSA-OAEP if the caller used it`, async () => {
      const { engine, wrap } = await importing();
      const ciphertext = wrap(randomBytes(32), { hash });
      const other = hash === 'sha512' ? 'SHA256' : 'SHA512';
      expect((await refusalOf(engine.transfers.importKey('k', { ciphertext, hashFunction: other }))).message).to.include(
        `crypto/rsa: decryption error with hash_function ${other}`,
      );
      for (const [name, hashFunction] of [
        ['a', hash.toUpperCase()],
        ['b', hash],
      ] as const) {
        expect(await engine.transfers.importKey(name, { ciphertext, hashFunction })).to.deep.equal([]);
      }
    });
  }

  for (const [request, message] of [
    [{ type: 'x' }, 'unknown key type: x'],
    [{ hashFunction: 'MD5' }, 'unknown hash function: MD5'],
    [{ ciphertext: '!!' }, 'illegal base64 data at input byte 0'],
    [{ ciphertext: Buffer.alloc(512).toString('base64') }, 'provided ciphertext is too short'],
    [
      { ciphertext: Buffer.alloc(536).toString('base64') },
      'crypto/rsa: decryption error with hash_function SHA256: set the one that wrapped the AES key, and use the wrapping key of this mount',
    ],
    [{ ciphertext: Buffer.alloc(512 + 5136).toString('base64') }, 'provided ciphertext is too long'],
    [{ ciphertext: '', publicKey: 'x' }, 'provided type does not support public_key import'],
    [{ ciphertext: '' }, "'ciphertext' must be supplied: provided type does not support public_key import"],
    [{ type: 'ecdsa-p256', ciphertext: '' }, "'ciphertext' or 'public_key' must be supplied"],
    [{ convergentEncryption: false }, 'import cannot be used on keys with convergent encryption enabled'],
    [{ autoRotatePeriodS: 3600 }, 'allow_rotation must be set to true if auto-rotation is enabled'],
    [{ autoRotatePeriodS: 3599, allowRotation: true }, 'auto rotate period must be 0 to disable or at least an hour'],
    [{ type: 'hmac', derived: true }, 'key derivation and convergent encryption not supported for keys of type hmac'],
    [{ derived: true, context: '!!' }, 'failed to base64-decode context'],
  ] as const) {
    it(`refuses ${JSON.stringify(request).slice(0, 60)}: ${message}`, async () => {
      const { engine, store, take } = await importing();
      const before = await everything(store);
      expect((await refusalOf(take('k', randomBytes(32), request))).message).to.equal(message);
      expect(await everything(store)).to.deep.equal(before);
      expect(await engine.keyExists('k')).to.equal(false);
    });
  }

  it('refuses an ephemeral key that is not AES-256, and modified material', async () => {
    const { engine, wrap } = await importing();
    const short = engine.transfers.importKey('k', { ciphertext: wrap(randomBytes(32), { keyBytes: 16 }) });
    expect((await refusalOf(short)).message).to.equal('expected ephemeral AES key to be 256-bit');
    const bytes = Buffer.from(wrap(randomBytes(32)), 'base64');
    bytes[520] = (bytes[520] ?? 0) ^ 1;
    const changed = engine.transfers.importKey('k', { ciphertext: bytes.toString('base64') });
    expect((await refusalOf(changed)).message).to.contain('kwp:');
  });

  it('leaves an existing key unchanged', async () => {
    const { engine, take } = await importing();
    await engine.createKey('k', {});
    expect((await refusalOf(take('k', randomBytes(32)))).message).to.contain('cannot be used with an existing key');
    expect(await engine.readKey('k')).to.include({ imported: false, latestVersion: 1 });
  });

  it('warns that a derived key needs its context later', async () => {
    const { take } = await importing();
    expect(await take('a', randomBytes(32), { derived: true })).to.have.lengthOf(1);
    expect(await take('b', randomBytes(32), { derived: true, context: contextOne })).to.deep.equal([]);
  });

  it('allows rotation only if requested; a rotated key is like any other', async () => {
    const { engine, take, wrap } = await importing();
    await take('fixed', randomBytes(32));
    expect((await refusalOf(engine.rotateKey('fixed'))).message).to.equal('imported key fixed does not allow rotation');
    await take('k', randomBytes(32), { allowRotation: true });
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    expect((await engine.rotateKey('k')).key).to.include({ latestVersion: 2, imported: false });
    expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
    const another = engine.transfers.importVersion('k', { ciphertext: wrap(randomBytes(32)) });
    expect((await refusalOf(another)).message).to.equal('the import_version endpoint can only be used with an imported key');
  });
});

describe('importing a version', () => {
  it('adds a version, with another size only for types without a fixed size', async () => {
    const { engine, take, wrap } = await importing();
    const [one, two] = [randomBytes(32), randomBytes(64)];
    await take('k', one, { type: 'hmac', exportable: true });
    await engine.transfers.importVersion('k', { ciphertext: wrap(two) });
    expect(await engine.readKey('k')).to.include({ latestVersion: 2, keySize: 64, imported: true });
    expect(await exported(engine, 'k', 'hmac-key')).to.deep.equal({ 1: one.toString('base64'), 2: two.toString('base64') });
    await take('aes', randomBytes(32));
    const short = engine.transfers.importVersion('aes', { ciphertext: wrap(randomBytes(16)) });
    expect((await refusalOf(short)).message).to.contain('invalid key size 16 bytes');
    expect(await engine.readKey('aes')).to.include({ latestVersion: 1 });
  });

  for (const [name, request, message] of [
    ['none', {}, 'no key found with name none; to import a new key, use the import/ endpoint'],
    ['generated', {}, 'the import_version endpoint can only be used with an imported key'],
    ['imported', { version: 7 }, 'no such key version'],
    ['imported', { version: 1 }, 'provided type does not support importing key versions'],
    ['imported', { ciphertext: '', publicKey: 'x' }, 'provided type does not support public_key import'],
  ] as const) {
    it(`refuses ${JSON.stringify(request)} on ${name}: ${message}`, async () => {
      const { engine, take, wrap } = await importing();
      await take('imported', randomBytes(32));
      await engine.createKey('generated', {});
      const importVersion = engine.transfers.importVersion(name, { ciphertext: wrap(randomBytes(32)), ...request });
      expect((await refusalOf(importVersion)).message).to.equal(message);
    });
  }
});

describe('exporting a key', () => {
  it('returns the material of all usable versions, of one, or of the latest', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', { exportable: true });
    await engine.rotateKey('k');
    await engine.rotateKey('k');
    await engine.configureKey('k', { minDecryptionVersion: 2 });
    const materialOf = async (version: number) =>
      Buffer.from((await storedVersion(store, 'k', version)).material).toString('hex');
    const decoded = async (version?: string) =>
      Object.entries(await exported(engine, 'k', 'encryption-key', version)).map(([n, text]) => [
        n,
        Buffer.from(text, 'base64').toString('hex'),
      ]);
    expect(await decoded()).to.deep.equal([
      ['2', await materialOf(2)],
      ['3', await materialOf(3)],
    ]);
    expect(await decoded('2')).to.deep.equal([['2', await materialOf(2)]]);
    expect(await decoded('v3')).to.deep.equal([['3', await materialOf(3)]]);
    expect(await decoded('latest')).to.deep.equal([['3', await materialOf(3)]]);
  });

  it('returns bytes that decrypt the key’s ciphertexts', async () => {
    const { engine, take } = await importing();
    await engine.createKey('k', { exportable: true });
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    const { 1: material = '' } = await exported(engine, 'k', 'encryption-key');
    await take('again', Buffer.from(material, 'base64'));
    expect(await decryptOne(engine, 'again', { ciphertext })).to.deep.equal({ plaintext: fox });
  });

  for (const [type, exportType, version, message] of [
    ['aes256-gcm96', 'bogus-key', undefined, 'invalid export type: bogus-key'],
    ['aes256-gcm96', 'signing-key', undefined, 'signing not supported for the key'],
    ['aes256-gcm96', 'cmac-key', undefined, 'CMAC not supported for the key'],
    ['aes256-gcm96', 'public-key', undefined, 'unknown key type aes256-gcm96 for export type public-key'],
    ['aes256-gcm96', 'certificate-chain', undefined, 'certificate chain not supported for keys that do not support signing'],
    ['hmac', 'encryption-key', undefined, 'encryption not supported for the key'],
    ['aes128-cmac', 'encryption-key', undefined, 'encryption not supported for the key'],
    ['aes256-gcm96', 'encryption-key', 'x', 'invalid key version'],
    ['aes256-gcm96', 'encryption-key', '-1', 'invalid key version'],
    ['aes256-gcm96', 'encryption-key', '9', 'version does not exist or cannot be found'],
    ['aes256-gcm96', 'encryption-key', '1', 'version for export is below minimum decryption version'],
  ] as const) {
    it(`refuses ${exportType} ${version ?? ''} of ${type}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { type, exportable: true });
      await engine.rotateKey('k');
      await engine.configureKey('k', { minDecryptionVersion: 2 });
      expect((await refusalOf(engine.transfers.exportKey('k', { exportType, version }))).message).to.equal(message);
    });
  }

  it('is refused for a key that is not exportable, also for HMAC secrets, and for an unknown key', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    for (const exportType of ['encryption-key', 'hmac-key']) {
      expect((await refusalOf(engine.transfers.exportKey('k', { exportType }))).message).to.equal(
        'private key material is not exportable',
      );
    }
    expect((await refusalOf(engine.transfers.exportKey('none', { exportType: 'hmac-key' }))).code).to.equal('not_found');
  });
});
