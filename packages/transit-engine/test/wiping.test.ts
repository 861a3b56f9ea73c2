import { generateKeyPairSync } from 'node:crypto';
import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { decodeVersionRecord } from '../src/keys/version-record.ts';
import { contextOne, decryptOne, encryptOne, fox, newEngine, paths, storedKey, storedVersion } from './fixtures.ts';
import { storeWithWrappingKey, wrapped } from './transfers/wrapped.ts';

type Commit = Store['commit'];

/** A store that keeps a reference to every version record that it returned or received. */
function rememberingStore(commitOf: (inner: Store) => Commit = (inner) => inner.commit) {
  const inner = memoryStore();
  const commit = commitOf(inner);
  const [read, written]: [Uint8Array[], Uint8Array[]] = [[], []];
  const store: Store = {
    ...inner,
    get: async (path) => {
      const record = await inner.get(path);
      if (record !== undefined && path.startsWith(paths.versions)) read.push(record.value);
      return record;
    },
    range: async (query) => {
      const page = await inner.range(query);
      if (query.prefix.startsWith(paths.versions)) read.push(...page.records.map(({ value }) => value));
      return page;
    },
    commit: (transaction) => {
      for (const { path, value } of transaction.writes) {
        if (value !== null && path.startsWith(paths.versions)) written.push(value);
      }
      return commit(transaction);
    },
  };
  return { store, inner, read, written };
}

function expectWiped(buffers: readonly Uint8Array[], count: number): void {
  expect(buffers).to.have.lengthOf(count);
  for (const bytes of buffers) expect(bytes.every((byte) => byte === 0)).to.equal(true);
}

/** The header of a record contains no secrets, so only the bytes after it are compared. */
function expectSecretsWiped(buffers: readonly Uint8Array[], count: number): void {
  expect(buffers).to.have.lengthOf(count);
  for (const bytes of buffers) {
    const { material, hmacSecret } = decodeVersionRecord(bytes);
    expect([...material, ...hmacSecret].every((byte) => byte === 0)).to.equal(true);
  }
}

describe('a written version record', () => {
  it('is wiped after the commit of a creation, rotation or encryption, but not in the store', async () => {
    const { store, inner, written } = rememberingStore();
    const { engine } = newEngine({ store });
    await engine.createKey('k', {});
    await engine.rotateKey('k');
    const { ciphertext } = await encryptOne(engine, 'on-the-way', { plaintext: fox });
    expectWiped(written, 3);
    expect((await storedVersion(inner, 'k', 2)).material.some((byte) => byte !== 0)).to.equal(true);
    expect(await decryptOne(newEngine({ store: inner }).engine, 'on-the-way', { ciphertext })).to.deep.equal({ plaintext: fox });
  });

  it('is wiped for a key pair, also one whose private half is added later', async () => {
    const wrapping = await storeWithWrappingKey();
    const { store, inner, read, written } = rememberingStore();
    const record = await wrapping.get(paths.wrappingKey);
    await inner.commit({ conditions: [], writes: [{ path: paths.wrappingKey, value: record?.value ?? null }] });
    const { engine } = newEngine({ store });
    await engine.createKey('ed25519', { type: 'ed25519' });
    await engine.createKey('rsa', { type: 'rsa-2048' });
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    await engine.transfers.importKey('later', { type: 'ecdsa-p256', publicKey: publicPem });
    const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' });
    await engine.transfers.importVersion('later', { ciphertext: wrapped(await engine.transfers.wrappingKey(), pkcs8) });
    expectWiped(written, 4);
    expectSecretsWiped(read, 1);
    expect(Buffer.from((await storedVersion(inner, 'later', 1)).material).equals(pkcs8)).to.equal(true);
  });

  for (const [because, commit] of [
    ['the commit conflicts', async () => ({ outcome: 'conflict', index: 1, revision: 1 })],
    [
      'the commit fails',
      async () => {
        throw new StoreError('outcome_unknown', 'it may still take effect');
      },
    ],
  ] satisfies [string, Commit][]) {
    it(`is wiped when ${because}`, async () => {
      let failing = false;
      const { store, written } = rememberingStore((inner) => (transaction) => (failing ? commit() : inner.commit(transaction)));
      const { engine } = newEngine({ store });
      await engine.createKey('k', {});
      failing = true;
      await Promise.allSettled([
        engine.createKey('new', {}),
        engine.rotateKey('k'),
        encryptOne(engine, 'on-the-way', { plaintext: fox }),
      ]);
      expect(written.length).to.be.at.least(4);
      expectWiped(written, written.length);
    });
  }
});

describe('a version record read from the store', () => {
  it('is wiped after it was decoded, also for a derived key', async () => {
    const { store, inner, read } = rememberingStore();
    const maker = newEngine({ store: inner }).engine;
    await maker.createKey('plain', {});
    await maker.createKey('derived', { derived: true });
    const { engine } = newEngine({ store });
    const plain = await encryptOne(engine, 'plain', { plaintext: fox });
    const derived = await encryptOne(engine, 'derived', { plaintext: fox, context: contextOne });
    expectWiped(read, 2);
    expect(await decryptOne(maker, 'plain', plain)).to.deep.equal({ plaintext: fox });
    expect(await decryptOne(maker, 'derived', { ...derived, context: contextOne })).to.deep.equal({ plaintext: fox });
  });

  it('is wiped after its date was read', async () => {
    const { store, read } = rememberingStore();
    const { engine } = newEngine({ store });
    await engine.createKey('k', {});
    await engine.rotateKey('k');
    read.length = 0;
    expect((await newEngine({ store }).engine.readKey('k')).versions).to.have.lengthOf(2);
    expectWiped(read, 2);
  });

  it('is wiped after an export, a backup, or an incomplete read', async () => {
    const { store, inner, read } = rememberingStore();
    const { engine } = newEngine({ store });
    await engine.createKey('k', { exportable: true, allowPlaintextBackup: true });
    await engine.rotateKey('k');
    read.length = 0;
    const { versions } = await engine.transfers.exportKey('k', { exportType: 'encryption-key' });
    expectSecretsWiped(read, 2);
    expect(versions[1]?.material).to.deep.equal(Uint8Array.from((await storedVersion(inner, 'k', 2)).material));
    read.length = 0;
    const backup = (await engine.transfers.backupKey('k')).toString('base64');
    expectSecretsWiped(read, 2);
    await engine.transfers.restoreKey({ backup, name: 'copy' });
    expect((await storedVersion(inner, 'copy', 2)).material).to.deep.equal((await storedVersion(inner, 'k', 2)).material);
    const { id } = await storedKey(inner, 'k');
    await inner.commit({ conditions: [], writes: [{ path: paths.version({ keyId: id, version: 2 }), value: null }] });
    read.length = 0;
    await Promise.allSettled([engine.transfers.exportKey('k', { exportType: 'encryption-key' })]);
    expectWiped(read, 1);
  });

  it('is wiped for the wrapping key, which is read once', async () => {
    const inner = await storeWithWrappingKey();
    const read: Uint8Array[] = [];
    const get: Store['get'] = async (path) => {
      const record = await inner.get(path);
      if (record !== undefined && path === paths.wrappingKey) read.push(record.value);
      return record;
    };
    const { engine } = newEngine({ store: { ...inner, get } });
    expect(await engine.transfers.wrappingKey()).to.equal(await engine.transfers.wrappingKey());
    expectWiped(read, 1);
  });

  it('is wiped after the sweep read its key', async () => {
    const { store, read } = rememberingStore();
    const { engine } = newEngine({ store });
    for (const name of ['kept', 'deleted']) {
      await engine.createKey(name, {});
      await engine.configureKey(name, { deletionAllowed: true });
    }
    await engine.deleteKey('deleted');
    read.length = 0;
    expect(await engine.sweep(100)).to.include({ removed: 1 });
    expectWiped(read, 3);
    expect(await encryptOne(engine, 'kept', { plaintext: fox })).to.include({ keyVersion: 1 });
  });
});

describe('the secrets of a restored backup', () => {
  for (const outcome of ['is restored', 'is refused']) {
    it(`are wiped when it ${outcome}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { exportable: true, allowPlaintextBackup: true });
      const text = (await engine.transfers.backupKey('k')).toString('base64');
      const decoded: Buffer[] = [];
      const from = Buffer.from;
      Object.assign(Buffer, {
        from: (...args: Parameters<typeof from>) => {
          const bytes = from(...args);
          if ((args[0] as unknown) === text) decoded.push(bytes);
          return bytes;
        },
      });
      try {
        await engine.transfers
          .restoreKey({ backup: text, name: outcome === 'is restored' ? 'copy' : 'k' })
          .catch(() => undefined);
      } finally {
        Object.assign(Buffer, { from });
      }
      expect(await engine.keyExists('copy')).to.equal(outcome === 'is restored');
      const { material } = await engine.transfers
        .exportKey('k', { exportType: 'encryption-key' })
        .then(({ versions }) => versions[0] ?? { material: Buffer.alloc(0) });
      expect(decoded).to.have.lengthOf(1);
      expect(decoded[0]?.includes(Buffer.from(material))).to.equal(false);
    });
  }
});
