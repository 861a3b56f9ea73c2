import { createPublicKey, randomBytes } from 'node:crypto';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { ImportKeyRequest, TransitEngine } from '../../src/index.ts';
import { encodeBackup } from '../../src/transfers/backup.ts';
import {
  base64,
  contextOne,
  decryptOne,
  encryptOne,
  everything,
  fox,
  newEngine,
  paths,
  refusalOf,
  startMs,
  storedKey,
  storedVersion,
} from '../fixtures.ts';
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
  it('is an RSA key of 4,096 bits, stored once even if two engines generate one at the same time', async function () {
    this.timeout(240_000); // two keys are generated, of which one is stored
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
      expect((await refusalOf(engine.transfers.importKey('k', { ciphertext, hashFunction: other }))).message).to.equal(
        'crypto/rsa: decryption error',
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
    [{ ciphertext: Buffer.alloc(536).toString('base64') }, 'crypto/rsa: decryption error'],
    [{ ciphertext: Buffer.alloc(512 + 5136).toString('base64') }, 'provided ciphertext is too long'],
    [{ ciphertext: '', publicKey: 'x' }, 'provided type does not support public_key import'],
    [{ ciphertext: '' }, "'ciphertext' must be supplied"],
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

describe('backup and restore', () => {
  const restorable = { exportable: true, allowPlaintextBackup: true };

  async function backupOf(engine: TransitEngine, name: string): Promise<string> {
    return (await engine.transfers.backupKey(name)).toString('base64');
  }

  it('restore a key under another name in another engine, with every version, secret and setting', async () => {
    const { engine, store, clock } = newEngine();
    const settings = { ...restorable, derived: true, convergentEncryption: true, autoRotatePeriodS: 7200 };
    await engine.createKey('k', settings);
    const context = contextOne;
    const one = await encryptOne(engine, 'k', { plaintext: fox, context });
    await engine.rotateKey('k');
    await engine.rotateKey('k');
    const hmac = await engine.signing.hmac('k', { input: fox });
    await engine.configureKey('k', { minDecryptionVersion: 2, minEncryptionVersion: 2, deletionAllowed: true });
    await engine.trimKey('k', { minAvailableVersion: 2 });
    await engine.configureKey('k', { minDecryptionVersion: 3, minEncryptionVersion: 3 });
    clock.nowMs += 1000;
    const backup = await backupOf(engine, 'k');
    expect(await engine.readKey('k')).to.deep.include({ backup: { timeMs: startMs + 1000, version: 3 } });

    const other = newEngine();
    other.clock.nowMs += 5000;
    await other.engine.transfers.restoreKey({ backup, name: 'copy' });
    const { name, revision, ...original } = await engine.readKey('k');
    const { name: _, revision: __, restore, ...copy } = await other.engine.readKey('copy');
    expect(copy).to.deep.equal(original);
    expect(restore).to.deep.equal({ timeMs: startMs + 5000, version: 3 });
    expect((await storedKey(other.store, 'copy')).id).to.not.equal((await storedKey(store, 'k')).id);
    expect(await other.engine.signing.hmac('copy', { input: fox })).to.deep.equal(hmac);
    await other.engine.configureKey('copy', { minDecryptionVersion: 2 });
    const two = await encryptOne(engine, 'k', { plaintext: fox, context });
    expect(await encryptOne(other.engine, 'copy', { plaintext: fox, context })).to.deep.equal(two);
    expect(
      (await refusalOf(other.engine.encryption.decrypt('copy', { ciphertext: one.ciphertext, context }))).message,
    ).to.contain('too old');
    expect((await other.engine.rotateKey('copy')).key).to.include({ latestVersion: 4 });
    other.clock.nowMs += 7200_000;
    expect(await other.engine.rotateDue(10)).to.deep.equal({ rotated: 1, failed: 0 });
  });

  for (const type of ['aes128-gcm96', 'chacha20-poly1305', 'hmac', 'aes256-cmac']) {
    it(`work for type ${type}`, async () => {
      const { engine, store } = newEngine();
      await engine.createKey('k', { ...restorable, type });
      await engine.transfers.restoreKey({ backup: await backupOf(engine, 'k'), name: 'copy' });
      expect(await storedVersion(store, 'copy', 1)).to.deep.equal({ ...(await storedVersion(store, 'k', 1)), keyName: 'copy' });
    });
  }

  it('keep an existing key unless forced; then they replace it completely', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', restorable);
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    const backup = await backupOf(engine, 'k');
    await engine.rotateKey('k');
    await engine.configureKey('k', { autoRotatePeriodS: 3600 });
    expect((await refusalOf(engine.transfers.restoreKey({ backup }))).message).to.equal('key "k" already exists');
    await engine.transfers.restoreKey({ backup, force: true });
    expect(await engine.readKey('k')).to.include({ latestVersion: 1, autoRotatePeriodS: 0 });
    expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
    expect(await engine.sweep(100)).to.include({ removed: 2 });
    expect(Object.keys(await everything(store)).filter((path) => path.startsWith(paths.due))).to.deep.equal([]);
  });

  it('restore more versions than fit into one transaction, and start over if the sweep deleted some', async () => {
    const inner = memoryStore();
    const { engine } = newEngine({ store: inner });
    await engine.createKey('k', restorable);
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    const record = { ...(await storedKey(inner, 'k')), latestVersion: 1500 };
    const first = await storedVersion(inner, 'k', 1);
    const versions = Array.from({ length: 1500 }, (_, index) => ({ ...first, version: index + 1 }));
    const backup = encodeBackup('k', record, versions).toString('base64');
    let commits = 0;
    const store: Store = {
      ...inner,
      commit: async (transaction) => {
        const result = await inner.commit(transaction);
        commits += 1;
        if (commits === 2) while (!(await newEngine({ store: inner }).engine.sweep(10_000)).finished);
        return result;
      },
    };
    const restoring = newEngine({ store }).engine;
    await restoring.transfers.restoreKey({ backup, name: 'copy' });
    expect(commits, 'two attempts of two parts and a name each').to.equal(6);
    expect(await decryptOne(restoring, 'copy', { ciphertext })).to.deep.equal({ plaintext: fox });
    expect((await restoring.readKey('copy')).versions).to.have.lengthOf(1500);
  });

  it('refuse a backup that was modified or truncated anywhere, before any write', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', restorable);
    const backup = await engine.transfers.backupKey('k');
    const before = await everything(store);
    for (let at = 0; at < backup.length; at += 7) {
      const changed = Buffer.from(backup);
      changed[at] = (changed[at] ?? 0) ^ 0x10;
      for (const bytes of [changed, backup.subarray(0, at)]) {
        const { code } = await refusalOf(engine.transfers.restoreKey({ backup: bytes.toString('base64') || '=', name: 'copy' }));
        expect(code).to.equal('invalid_request');
      }
    }
    expect(await everything(store)).to.deep.equal(before);
  });

  for (const [fields, because] of [
    [{ junk: 'x'.repeat(1000) }, 'a member that no key has'],
    [{ backup: { timeMs: 1e300, version: 1 } }, 'a backup at no time'],
    [{ backup: { timeMs: -1, version: 1 } }, 'a backup before time'],
    [{ backup: { timeMs: 1, version: 0.5 } }, 'a backup of no version'],
    [{ latestCreatedMs: Number.MAX_SAFE_INTEGER }, 'a creation behind the last date there is'],
  ] as const) {
    it(`refuse ${because}, and write nothing`, async () => {
      const { engine, store } = newEngine();
      await engine.createKey('k', restorable);
      const record = { ...(await storedKey(store, 'k')), ...fields };
      const version = { ...(await storedVersion(store, 'k', 1)), version: 1, createdMs: record.latestCreatedMs };
      const backup = encodeBackup('k', record, [version]).toString('base64');
      const { engine: other, store: empty } = newEngine();
      expect((await refusalOf(other.transfers.restoreKey({ backup }))).code).to.equal('invalid_request');
      expect(await everything(empty)).to.deep.equal({});
    });
  }

  it('store only the time and the version of the last backup', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', restorable);
    const occasion = { timeMs: 1, version: 1, junk: 'x' };
    const record = { ...(await storedKey(store, 'k')), backup: occasion };
    const version = { ...(await storedVersion(store, 'k', 1)), version: 1 };
    await engine.transfers.restoreKey({ backup: encodeBackup('k', record, [version]).toString('base64'), name: 'copy' });
    expect((await storedKey(store, 'copy')).backup).to.deep.equal({ timeMs: 1, version: 1 });
  });

  it('check the permission for the name in the backup, before any write', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', restorable);
    const backup = await backupOf(engine, 'k');
    const { engine: other, store } = newEngine();
    const mayRestore = (name: string): boolean => name !== 'k';
    expect((await refusalOf(other.transfers.restoreKey({ backup, mayRestore }))).code).to.equal('permission_denied');
    expect(await everything(store)).to.deep.equal({});
    await other.transfers.restoreKey({ backup, name: 'copy', mayRestore });
    expect(await other.keyExists('copy')).to.equal(true);
  });

  it('are refused for a key without permission, an unknown key, and an absent or invalid backup', async () => {
    const { engine } = newEngine();
    await engine.createKey('a', { allowPlaintextBackup: true });
    await engine.createKey('b', { exportable: true });
    const messageOf = async (request: Promise<unknown>) => (await refusalOf(request)).message;
    expect(await messageOf(engine.transfers.backupKey('a'))).to.equal('exporting is disallowed on the policy');
    expect(await messageOf(engine.transfers.backupKey('b'))).to.equal('plaintext backup is disallowed on the policy');
    expect(await messageOf(engine.transfers.backupKey('c'))).to.equal('key "c" not found');
    expect(await messageOf(engine.transfers.restoreKey({}))).to.equal("'backup' must be supplied");
    expect(await messageOf(engine.transfers.restoreKey({ backup: '!!' }))).to.contain('illegal base64');
    expect(await messageOf(engine.transfers.restoreKey({ backup: base64('{}') }))).to.contain('cannot be restored');
    expect(await messageOf(engine.transfers.restoreKey({ backup: base64('null') }))).to.contain('cannot be restored');
  });
});
