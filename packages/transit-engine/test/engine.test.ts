import { expect } from 'chai';
import {
  aeadTypes,
  anything,
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
  storedVersion,
} from './fixtures.ts';

describe('creating a key', () => {
  it('has the default settings of the API specification', async () => {
    const { engine } = newEngine();
    const { key, warnings } = await engine.createKey('k', {});
    expect(warnings).to.deep.equal([]);
    expect(key).to.deep.equal({
      name: 'k',
      revision: 1,
      type: 'aes256-gcm96',
      derived: false,
      exportable: false,
      allowPlaintextBackup: false,
      deletionAllowed: false,
      imported: false,
      allowRotation: false,
      keySize: 0,
      autoRotatePeriodS: 0,
      keepEncryptionVersions: 0,
      keepDecryptionVersions: 0,
      trimAfterS: 0,
      latestVersion: 1,
      minDecryptionVersion: 1,
      minEncryptionVersion: 0,
      minAvailableVersion: 0,
      supportsEncryption: true,
      supportsDecryption: true,
      supportsSigning: false,
      supportsDerivation: true,
      versions: [{ version: 1, createdMs: startMs }],
    });
    expect(await engine.readKey('k')).to.deep.equal(key);
  });

  it('stores every requested setting', async () => {
    const { engine } = newEngine();
    const settings = { type: 'aes128-gcm96', exportable: true, allowPlaintextBackup: true, autoRotatePeriodS: 3600 };
    await engine.createKey('k', { ...settings, derived: true, convergentEncryption: true });
    expect(await engine.readKey('k')).to.include({
      ...settings,
      derived: true,
      kdf: 'hkdf_sha256',
      convergentEncryption: true,
      convergentEncryptionVersion: -1,
    });
  });

  it('shows convergence on derived keys only, and its version on convergent keys only', async () => {
    const { engine } = newEngine();
    expect((await engine.createKey('plain', {})).key).to.not.have.any.keys('kdf', 'convergentEncryption');
    const { key } = await engine.createKey('derived', { derived: true });
    expect(key).to.include({ kdf: 'hkdf_sha256', convergentEncryption: false });
    expect(key).to.not.have.property('convergentEncryptionVersion');
  });

  it('leaves nothing behind when it is refused', async () => {
    const { engine, store } = newEngine();
    expect(await refusalOf(engine.createKey('k', { type: 'x' }))).to.deep.equal({
      code: 'invalid_request',
      message: 'unknown key type x',
    });
    expect(await refusalOf(engine.createKey('-k', {}))).to.include({ code: 'invalid_request' });
    expect(await everything(store)).to.deep.equal({});
  });

  it('leaves an existing key unchanged, and warns if the request differs from it', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', { exportable: true });
    const before = await everything(store);
    const { key, warnings } = await engine.createKey('k', { type: 'chacha20-poly1305', derived: true });
    expect(key).to.include({ type: 'aes256-gcm96', derived: false, exportable: true, latestVersion: 1 });
    expect(warnings.join()).to.contain('key k already existed');
    expect((await engine.createKey('k', { exportable: true })).warnings).to.deep.equal([]);
    expect((await engine.createKey('k', {})).warnings).to.deep.equal([]);
    expect(await everything(store)).to.deep.equal(before);
  });

  for (const [type, bytes] of [
    ['aes128-gcm96', 16],
    ['aes256-gcm96', 32],
    ['chacha20-poly1305', 32],
  ] as const) {
    it(`draws ${bytes} bytes of material and a 32-byte HMAC secret for ${type}`, async () => {
      const { engine, store } = newEngine();
      await engine.createKey('k', { type });
      await engine.rotateKey('k');
      const [first, second] = [await storedVersion(store, 'k', 1), await storedVersion(store, 'k', 2)];
      expect(first.material).to.have.lengthOf(bytes);
      expect(first.hmacSecret).to.have.lengthOf(32);
      const drawn = [first.material, first.hmacSecret, second.material, second.hmacSecret];
      expect(new Set(drawn.map((secret) => Buffer.from(secret).toString('hex'))).size).to.equal(4);
      expect(drawn.some((secret) => secret.every((byte) => byte === 0))).to.equal(false);
    });
  }
});

describe('reading and listing keys', () => {
  it('refuses an unknown name and an invalid name', async () => {
    const { engine } = newEngine();
    for (const name of ['k', '', 'a/b', '..', 'x'.repeat(5000), '\ud800']) {
      expect(await refusalOf(engine.readKey(name)), name).to.include({ code: 'not_found' });
      expect(await engine.keyExists(name)).to.equal(false);
    }
  });

  it('lists names in byte order', async () => {
    const { engine } = newEngine();
    for (const name of ['b', 'a', 'B', '_x', 'a.1', 'a-1', '10', '2']) await engine.createKey(name, {});
    expect(await engine.listKeys()).to.deep.equal(['10', '2', 'B', '_x', 'a', 'a-1', 'a.1', 'b']);
  });

  it('lists names after a given name, up to a limit', async () => {
    const { engine } = newEngine();
    for (const name of ['a', 'b', 'c', 'd']) await engine.createKey(name, {});
    expect(await engine.listKeys({ after: 'a', limit: 2 })).to.deep.equal(['b', 'c']);
    expect(await engine.listKeys({ after: 'bb' })).to.deep.equal(['c', 'd']);
    expect(await engine.listKeys({ limit: 0 })).to.have.lengthOf(4);
    expect(await engine.listKeys({ limit: -1 })).to.have.lengthOf(4);
    expect(await engine.listKeys({ after: `a\ud800${'/x'.repeat(2000)}`, limit: 1 })).to.deep.equal(['b']);
    for (let length = 596; length <= 602; length++) {
      const after = `a${'.'.repeat(length)}\u{1f600}`;
      expect(await engine.listKeys({ after, limit: 1 }), 'wherever the cut falls').to.deep.equal(['b']);
    }
    expect(await refusalOf(engine.listKeys({ after: 'd' }))).to.include({ code: 'not_found' });
  });

  it('lists more keys than one page of the store holds', async () => {
    const { engine } = newEngine();
    for (let i = 0; i < 1100; i++) await engine.createKey(`k${i}`, {});
    expect(await engine.listKeys()).to.have.lengthOf(1100);
    expect(await engine.listKeys({ limit: 1050 })).to.have.lengthOf(1050);
  });

  it('lists no keys of other mounts', async () => {
    const { engine, store } = newEngine();
    await newEngine({ store, mountId: 'm2' }).engine.createKey('k', {});
    expect(await refusalOf(engine.listKeys())).to.include({ code: 'not_found' });
    expect(await refusalOf(engine.readKey('k'))).to.include({ code: 'not_found' });
  });
});

describe('rotating, configuring and trimming a key', () => {
  it('rotates every type, and dates each version', async () => {
    for (const type of aeadTypes) {
      const { engine, clock } = newEngine();
      await engine.createKey('k', { type });
      clock.nowMs += 1000;
      const { key } = await engine.rotateKey('k');
      expect(key).to.include({ latestVersion: 2, minDecryptionVersion: 1, minEncryptionVersion: 0 });
      expect(key.versions).to.deep.equal([
        { version: 1, createdMs: startMs },
        { version: 2, createdMs: startMs + 1000 },
      ]);
    }
  });

  it('refuses each change of an unknown key with its own error text', async () => {
    const { engine } = newEngine();
    expect(await refusalOf(engine.rotateKey('k'))).to.deep.equal({ code: 'key_not_found', message: 'key not found' });
    expect(await refusalOf(engine.configureKey('k', {}))).to.deep.equal({
      code: 'key_not_found',
      message: 'no existing key named k could be found',
    });
    expect(await refusalOf(engine.trimKey('k', {}))).to.deep.equal({ code: 'key_not_found', message: 'invalid key name' });
    expect(await refusalOf(engine.deleteKey('k'))).to.deep.equal({
      code: 'key_not_found',
      message: 'error deleting policy k: could not delete key; not found',
    });
  });

  it('hides versions below min_decryption_version and shows them again', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    for (let i = 0; i < 4; i++) await engine.rotateKey('k');
    const { key } = await engine.configureKey('k', { minDecryptionVersion: 4 });
    expect(key.versions.map(({ version }) => version)).to.deep.equal([4, 5]);
    const again = await engine.configureKey('k', { minDecryptionVersion: 1 });
    expect(again.key.versions.map(({ version }) => version)).to.deep.equal([1, 2, 3, 4, 5]);
  });

  it('shows the versions of a key in numeric order past 9', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    for (let i = 0; i < 11; i++) await engine.rotateKey('k');
    const { versions } = await engine.readKey('k');
    expect(versions.map(({ version }) => version)).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  });

  it('reads the versions of a key once for all who request it at the same time', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    const other = newEngine({ store }).engine;
    const { range } = store;
    let ranges = 0;
    store.range = (query) => {
      ranges += 1;
      return range.call(store, query);
    };
    const views = await Promise.all(Array.from({ length: 20 }, () => other.readKey('k')));
    expect([ranges, new Set(views).size]).to.deep.equal([1, 1]);
    await other.rotateKey('k');
    expect((await other.readKey('k')).versions).to.have.length(2);
    store.range = () => Promise.reject(new Error('the disk failed'));
    const failing = newEngine({ store }).engine;
    const failures = await Promise.all(Array.from({ length: 3 }, () => failing.readKey('k').catch(String)));
    expect(new Set(failures)).to.deep.equal(new Set(['Error: the disk failed']));
    store.range = range;
    expect((await failing.readKey('k')).versions).to.have.length(2);
  });

  it('makes views of many versions one after the other', async () => {
    const { engine, store } = newEngine();
    const names = ['k', 'l', 'm'];
    for (const name of names) {
      await engine.createKey(name, { type: 'ed25519', derived: true });
      for (let i = 0; i < 256; i++) await engine.rotateKey(name);
    }
    const { range } = store;
    let [reading, most] = [0, 0];
    store.range = async (query) => {
      reading += 1;
      most = Math.max(most, reading);
      try {
        return await range.call(store, query);
      } finally {
        reading -= 1;
      }
    };
    const other = newEngine({ store }).engine;
    const views = await Promise.all(names.flatMap((name) => [other.readKey(name), other.readKey(name, { context: contextOne })]));
    expect(views.map(({ versions }) => versions.length)).to.deep.equal(Array(6).fill(257));
    expect(most).to.equal(1);
  });

  it('applies no part of a configuration if one part is refused', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const request = { deletionAllowed: true, exportable: true, minDecryptionVersion: 2 };
    expect(await refusalOf(engine.configureKey('k', request))).to.include({ code: 'invalid_request' });
    expect(await engine.readKey('k')).to.include({ deletionAllowed: false, exportable: false });
  });

  it('trims permanently: the material is deleted from the store', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    const { material } = await storedVersion(store, 'k', 1);
    await engine.rotateKey('k');
    await engine.configureKey('k', { minDecryptionVersion: 2, minEncryptionVersion: 2 });
    const { key } = await engine.trimKey('k', { minAvailableVersion: 2 });
    expect(key).to.include({ minAvailableVersion: 2 });
    expect(key.versions.map(({ version }) => version)).to.deep.equal([2]);
    const left = Object.values(await everything(store)).join();
    expect(left).to.not.contain(Buffer.from(material).toString('hex'));
    expect((await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext }))).message).to.contain('too old');
  });
});

describe('deleting a key', () => {
  it('is refused until the configuration allows it', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    expect(await refusalOf(engine.deleteKey('k'))).to.deep.equal({
      code: 'deletion_not_allowed',
      message: 'error deleting policy k: deletion is not allowed for this key: set deletion_allowed in its configuration',
    });
    expect(await engine.keyExists('k')).to.equal(true);
  });

  it('is one write; a new key of the same name shares nothing with the deleted one', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    await engine.configureKey('k', { deletionAllowed: true });
    const before = Object.keys(await everything(store));
    await engine.deleteKey('k');
    expect(Object.keys(await everything(store))).to.deep.equal(before.filter((path) => path !== paths.key('k')));
    expect(await engine.keyExists('k')).to.equal(false);
    expect((await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext }))).message).to.equal('encryption key not found');

    await engine.createKey('k', {});
    expect((await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext }))).message).to.equal(
      'cipher: message authentication failed',
    );
  });
});

describe('two mounts', () => {
  it('have separate keys, each under its own prefix', async () => {
    const { engine, store } = newEngine();
    const other = newEngine({ store, mountId: 'm2', ciphertextPrefix: 'acme' }).engine;
    await engine.createKey('k', {});
    await other.createKey('k', {});
    const { ciphertext } = await encryptOne(other, 'k', { plaintext: fox });
    expect(ciphertext).to.match(/^acme:v1:/);
    expect(await decryptOne(other, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
    expect((await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext }))).message).to.equal('invalid ciphertext: no prefix');
  });
});

describe('the settings of all keys', () => {
  it('allow encryptions to create keys, unless upsert is disabled', async () => {
    const { engine } = newEngine();
    expect(await engine.readKeysConfig()).to.deep.equal({ disableUpsert: false });
    expect(await engine.writeKeysConfig({ disableUpsert: true })).to.deep.equal({ disableUpsert: true });
    expect(await engine.readKeysConfig()).to.deep.equal({ disableUpsert: true });
    expect((await refusalOf(engine.ciphertexts.encrypt('k', { ...anything, plaintext: base64('x') }))).message).to.equal(
      'encryption key not found',
    );
  });
});
