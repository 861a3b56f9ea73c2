import { generateKeyPairSync } from 'node:crypto';
import { memoryStore, type Store, type StoredRecord, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { DamagedRecord, type EngineCaches, type TransitEngine, TransitError } from '../src/index.ts';
import {
  anything,
  decryptOne,
  encryptOne,
  everything,
  fox,
  keyCaches,
  newEngine,
  paths,
  refusalOf,
  storedKey,
} from './fixtures.ts';

/** A store that delays the results of reads of one path until they are released. */
function heldReads(inner: Store, held: (path: string) => boolean) {
  let letGo = (): void => {};
  let arrived = (): void => {};
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const waiting = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const store: Store = {
    ...inner,
    get: async (path): Promise<StoredRecord | undefined> => {
      const record = await inner.get(path);
      if (!held(path)) return record;
      arrived();
      await gate;
      return record;
    },
  };
  return { store, waiting, letGo: () => letGo() };
}

describe('concurrent changes of one key', () => {
  it('all take effect, without a conflict', async () => {
    const inner = memoryStore();
    let conflicts = 0;
    const store: Store = {
      ...inner,
      commit: async (transaction) => {
        const result = await inner.commit(transaction);
        if (result.outcome === 'conflict') conflicts += 1;
        return result;
      },
    };
    const { engine } = newEngine({ store });
    await engine.createKey('k', {});
    await Promise.all([
      ...Array.from({ length: 10 }, () => engine.rotateKey('k')),
      engine.configureKey('k', { exportable: true }),
      engine.configureKey('k', { autoRotatePeriodS: 3600 }),
    ]);
    const key = await engine.readKey('k');
    expect(key).to.include({ latestVersion: 11, exportable: true, autoRotatePeriodS: 3600 });
    expect(key.versions).to.have.lengthOf(11);
    expect(conflicts).to.equal(0);
  });

  it('from two nodes all take effect, because they start over after a conflict', async () => {
    const store = memoryStore();
    const [one, other] = [newEngine({ store }).engine, newEngine({ store }).engine];
    await one.createKey('k', {});
    await Promise.all([
      one.rotateKey('k'),
      other.rotateKey('k'),
      one.rotateKey('k'),
      other.configureKey('k', { exportable: true }),
    ]);
    expect(await one.readKey('k')).to.include({ latestVersion: 4, exportable: true });
  });

  describe('when another node changes the key between reading and writing', () => {
    /** A node whose first commit is preceded by a change of another node. */
    async function overtaken(change: (other: TransitEngine) => Promise<unknown>) {
      const inner = memoryStore();
      const other = newEngine({ store: inner }).engine;
      await other.createKey('k', {});
      await other.configureKey('k', { deletionAllowed: true });
      let done = false;
      const store: Store = {
        ...inner,
        commit: async (transaction) => {
          if (!done) {
            done = true;
            await change(other);
          }
          return inner.commit(transaction);
        },
      };
      return { engine: newEngine({ store }).engine, other };
    }

    it('do not undo its change', async () => {
      const { engine, other } = await overtaken((node) => node.rotateKey('k'));
      expect((await engine.configureKey('k', { exportable: true })).key).to.include({ exportable: true, latestVersion: 2 });
      expect(await other.readKey('k')).to.include({ exportable: true, latestVersion: 2 });
    });

    it('respect its new settings', async () => {
      const { engine, other } = await overtaken((node) => node.configureKey('k', { deletionAllowed: false }));
      expect(await refusalOf(engine.deleteKey('k'))).to.include({ code: 'deletion_not_allowed' });
      expect(await other.keyExists('k')).to.equal(true);
    });

    it('find the key deleted', async () => {
      const { engine } = await overtaken((node) => node.deleteKey('k'));
      expect(await refusalOf(engine.rotateKey('k'))).to.include({ code: 'key_not_found' });
    });
  });

  describe('when another node makes a key of the same name between reading and writing', () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const imported = { type: 'rsa-2048', publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString() };
    const makers = {
      create: (engine: TransitEngine, mayUpdate: boolean) => engine.createKey('k', { type: 'hmac', mayUpdate }),
      import: (engine: TransitEngine, mayUpdate: boolean) => engine.transfers.importKey('k', { ...imported, mayUpdate }),
      encrypt: (engine: TransitEngine, mayUpdate: boolean) =>
        engine.ciphertexts.encrypt('k', { plaintext: fox, mayCreate: true, mayUpdate }),
    };
    for (const [first, second] of [
      ['create', 'create'],
      ['create', 'import'],
      ['import', 'create'],
      ['import', 'import'],
      ['encrypt', 'create'],
      ['create', 'encrypt'],
    ] as const)
      it(`a caller who may only create is refused: ${first}, then ${second}`, async () => {
        const inner = memoryStore();
        let written: Record<string, string> | undefined;
        const store: Store = {
          ...inner,
          commit: async (transaction) => {
            if (written === undefined) {
              await makers[first](newEngine({ store: inner }).engine, false);
              written = await everything(inner);
            }
            return inner.commit(transaction);
          },
        };
        const { engine } = newEngine({ store });
        expect(await refusalOf(makers[second](engine, false))).to.deep.equal({
          code: 'permission_denied',
          message: 'permission denied',
        });
        expect(await everything(inner)).to.deep.equal(written);
      });
  });

  it('create a key only once', async () => {
    const { engine } = newEngine();
    const answers = await Promise.all(Array.from({ length: 5 }, () => engine.createKey('k', {})));
    expect(new Set(answers.map(({ key }) => key.revision)).size).to.equal(1);
  });

  it('are refused after too many conflicts, and change nothing', async () => {
    const inner = memoryStore();
    const store: Store = { ...inner, commit: async () => ({ outcome: 'conflict', index: 1, revision: 1 }) };
    const { engine } = newEngine({ store });
    expect(await refusalOf(engine.createKey('k', {}))).to.include({ code: 'too_many_conflicts' });
    expect(await everything(inner)).to.deep.equal({});
  });
});

describe('a key in use while it changes', () => {
  it('encrypts during rotations under the old or the new version, never with an error', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    let rotating = true;
    const rotations = (async () => {
      try {
        for (let i = 0; i < 30; i++) await engine.rotateKey('k');
      } finally {
        rotating = false;
      }
    })();
    const versions: number[] = [];
    while (rotating) {
      const { ciphertext, keyVersion } = await encryptOne(engine, 'k', { plaintext: fox });
      versions.push(keyVersion);
      expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
    }
    await rotations;
    expect(versions).to.deep.equal([...versions].sort((a, b) => a - b));
    expect(await encryptOne(engine, 'k', { plaintext: fox })).to.include({ keyVersion: 31 });
  });

  for (const reportsEverything of [false, true])
    it(`is never older than the last applied ${reportsEverything ? 'state' : 'change'}`, async () => {
      const { engine } = newEngine({ store: memoryStore({ reportsEverything }) });
      await engine.createKey('k', {});
      const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
      for (let version = 2; version <= 20; version++) {
        await engine.rotateKey('k');
        expect(await encryptOne(engine, 'k', { plaintext: fox })).to.include({ keyVersion: version });
      }
      await engine.configureKey('k', { minDecryptionVersion: 20, deletionAllowed: true });
      expect(await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext }))).to.include({ code: 'key_version_unavailable' });
      await engine.deleteKey('k');
      expect(await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext }))).to.include({ code: 'key_not_found' });
      expect(engine.cachedRevision('k')).to.equal(undefined);
    });

  for (const reportsEverything of [false, true])
    it(`is loaded again when ${reportsEverything ? 'another state' : 'a change'} overtakes its load`, async () => {
      const inner = memoryStore({ reportsEverything });
      const changer = newEngine({ store: inner }).engine;
      await changer.createKey('k', {});
      const { store, waiting, letGo } = heldReads(inner, (path) => path === paths.key('k'));
      const { engine } = newEngine({ store });

      const early = encryptOne(engine, 'k', { plaintext: fox });
      await waiting;
      await changer.rotateKey('k');
      const late = encryptOne(engine, 'k', { plaintext: fox });
      letGo();
      expect((await early).keyVersion, 'asked before the change').to.be.oneOf([1, 2]);
      expect(await late, 'asked after the change').to.include({ keyVersion: 2 });
      expect(await encryptOne(engine, 'k', { plaintext: fox }), 'from the cache').to.include({ keyVersion: 2 });
      expect(engine.cachedRevision('k')).to.equal((await changer.readKey('k')).revision);
    });

  it('is read again when a version is trimmed during a request', async () => {
    const inner = memoryStore();
    const changer = newEngine({ store: inner }).engine;
    await changer.createKey('k', {});
    const { ciphertext } = await encryptOne(changer, 'k', { plaintext: fox });
    await changer.rotateKey('k');
    const { engine } = newEngine({ store: inner });
    expect(await engine.keyExists('k')).to.equal(true);
    const { id } = await storedKey(inner, 'k');
    const { store, waiting, letGo } = heldReads(inner, (path) => path === paths.key('k'));
    const late = newEngine({ store }).engine;
    const request = late.ciphertexts.decrypt('k', { ciphertext });
    await waiting;
    await changer.configureKey('k', { minDecryptionVersion: 2, minEncryptionVersion: 2 });
    await changer.trimKey('k', { minAvailableVersion: 2 });
    letGo();
    expect(await inner.get(paths.version({ keyId: id, version: 1 }))).to.equal(undefined);
    expect(await refusalOf(request)).to.include({ code: 'key_version_unavailable' });
  });

  it('counts as missing when it is deleted and swept during a request', async () => {
    const inner = memoryStore();
    const changer = newEngine({ store: inner }).engine;
    await changer.createKey('k', {});
    const { ciphertext } = await encryptOne(changer, 'k', { plaintext: fox });
    await changer.configureKey('k', { deletionAllowed: true });
    const { store, waiting, letGo } = heldReads(inner, (path) => path === paths.key('k'));
    const request = newEngine({ store }).engine.ciphertexts.decrypt('k', { ciphertext });
    await waiting;
    await changer.deleteKey('k');
    await changer.sweep(100);
    letGo();
    expect(await refusalOf(request)).to.include({ code: 'key_not_found' });
  });
});

describe('a store that fails', () => {
  const changes = {
    createKey: (engine: TransitEngine) => engine.createKey('new', {}),
    rotateKey: (engine: TransitEngine) => engine.rotateKey('k'),
    configureKey: (engine: TransitEngine) => engine.configureKey('k', { exportable: true }),
    trimKey: (engine: TransitEngine) => engine.trimKey('k', { minAvailableVersion: 2 }),
    deleteKey: (engine: TransitEngine) => engine.deleteKey('k'),
    encrypt: (engine: TransitEngine) => engine.ciphertexts.encrypt('new', { ...anything, plaintext: fox }),
    writeKeysConfig: (engine: TransitEngine) => engine.writeKeysConfig({ disableUpsert: true }),
  };
  for (const [name, change] of Object.entries(changes)) {
    it(`in ${name} changes nothing, is tried once, and leaves the key usable`, async () => {
      const inner = memoryStore();
      let failing = false;
      let commits = 0;
      const store: Store = {
        ...inner,
        commit: async (transaction) => {
          if (!failing) return inner.commit(transaction);
          commits += 1;
          throw new StoreError('disk_low', 'the disk is almost full');
        },
      };
      const { engine } = newEngine({ store });
      await engine.createKey('k', {});
      const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
      await engine.rotateKey('k');
      await engine.configureKey('k', { minDecryptionVersion: 2, minEncryptionVersion: 2, deletionAllowed: true });
      const [before, view] = [await everything(inner), await engine.readKey('k')];

      failing = true;
      const [result] = await Promise.allSettled([change(engine)]);
      expect(result?.status === 'rejected' && result.reason).to.be.instanceOf(StoreError);
      expect(commits).to.equal(1);
      expect(await everything(inner)).to.deep.equal(before);
      expect(await engine.readKey('k')).to.deep.equal(view);

      failing = false;
      await engine.configureKey('k', { minDecryptionVersion: 1, minEncryptionVersion: 0 });
      expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
    });
  }

  it('in any read after a commit does not turn a committed change into a refusal', async () => {
    const inner = memoryStore();
    let sealed = false;
    const refuseSealed = (): void => {
      if (sealed) throw new StoreError('sealed', 'transitd is sealed');
    };
    const store: Store = {
      ...inner,
      get: async (path) => {
        refuseSealed();
        return inner.get(path);
      },
      range: async (query) => {
        refuseSealed();
        return inner.range(query);
      },
      commit: async (transaction) => {
        const result = await inner.commit(transaction);
        sealed = true;
        return result;
      },
    };
    const { engine, clock } = newEngine({ store });
    const reader = newEngine({ store: inner }).engine;
    for (const change of [
      () => engine.createKey('k', {}),
      () => engine.rotateKey('k'),
      () => engine.rotateKey('k'),
      () => engine.configureKey('k', { minDecryptionVersion: 3, minEncryptionVersion: 3 }),
      () => engine.trimKey('k', { minAvailableVersion: 2 }),
      () => engine.configureKey('k', { minDecryptionVersion: 2 }),
    ]) {
      sealed = false;
      clock.nowMs += 1000;
      const { key } = await change();
      expect(sealed).to.equal(true);
      expect(key).to.deep.equal(await reader.readKey('k'));
    }
  });

  it('reports a lost version of a key as a damaged record, not as a mistake of the caller', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    const { id } = await storedKey(store, 'k');
    await store.commit({ conditions: [], writes: [{ path: paths.version({ keyId: id, version: 1 }), value: null }] });
    const [result] = await Promise.allSettled([encryptOne(engine, 'k', { plaintext: fox })]);
    const reason: unknown = result?.status === 'rejected' && result.reason;
    expect(reason).to.be.instanceOf(DamagedRecord);
    expect(reason).to.not.be.instanceOf(TransitError);
  });
});

describe('an engine that is closed while an operation waits for the store', () => {
  it('does not answer the operation', async () => {
    const inner = memoryStore();
    const maker = newEngine({ store: inner }).engine;
    await maker.createKey('k', {});
    const { ciphertext } = await encryptOne(maker, 'k', { plaintext: fox });
    for (const operation of [
      (engine: TransitEngine) => engine.ciphertexts.encrypt('k', { ...anything, plaintext: fox }),
      (engine: TransitEngine) => engine.ciphertexts.decrypt('k', { ciphertext }),
      (engine: TransitEngine) => engine.ciphertexts.rewrap('k', { ciphertext }),
      (engine: TransitEngine) => engine.ciphertexts.decrypt('k', { items: [{ ciphertext }] }),
    ]) {
      const { store, waiting, letGo } = heldReads(inner, (path) => path.startsWith(paths.versions));
      const { engine } = newEngine({ store });
      const request = operation(engine);
      await waiting;
      engine.close();
      letGo();
      const [result] = await Promise.allSettled([request]);
      const reason: unknown = result?.status === 'rejected' && result.reason;
      expect(reason).to.be.instanceOf(StoreError).with.property('code', 'sealed');
    }
  });
});

describe('the cache', () => {
  async function countingEngine({ cacheSize, ...options }: { readonly cacheSize: number; readonly caches?: EngineCaches }) {
    const inner = memoryStore();
    let reads = 0;
    const store: Store = {
      ...inner,
      get: (path) => {
        reads += 1;
        return inner.get(path);
      },
    };
    const maker = newEngine({ store: inner }).engine;
    for (let i = 0; i < 30; i++) await maker.createKey(`k${i}`, {});
    await maker.writeCacheConfig({ size: cacheSize });
    const { engine } = newEngine({ store, ...options });
    await engine.open();
    const readsOf = async (name: string): Promise<number> => {
      const before = reads;
      await encryptOne(engine, name, { plaintext: fox });
      return reads - before;
    };
    return { engine, readsOf };
  }

  it('keeps the configured number of keys, the last used ones', async () => {
    const { readsOf } = await countingEngine({ cacheSize: 10 });
    for (let i = 0; i < 30; i++) expect(await readsOf(`k${i}`)).to.equal(2);
    for (let i = 20; i < 30; i++) expect(await readsOf(`k${i}`)).to.equal(0);
    expect(await readsOf('k0')).to.equal(2);
  });

  it('keeps no more keys than fit its memory, for any configured number', async () => {
    for (const cacheSize of [0, 1_000_000_000]) {
      const { readsOf } = await countingEngine({ cacheSize, caches: keyCaches(30_000) });
      for (let i = 0; i < 30; i++) await readsOf(`k${i}`);
      expect(await readsOf('k29')).to.equal(0);
      expect(await readsOf('k0')).to.be.above(0);
    }
  });

  it('shares its memory with the caches of other mounts, of which the largest gives up keys', async () => {
    const caches = keyCaches(30_000);
    const small = newEngine({ caches, mountId: 'small' }).engine;
    const large = newEngine({ caches, mountId: 'large' }).engine;
    const useNew = async (engine: TransitEngine, name: string): Promise<void> => {
      await engine.createKey(name, {});
      await encryptOne(engine, name, { plaintext: fox });
    };
    await useNew(small, 'only');
    for (let i = 0; i < 30; i++) await useNew(large, `k${i}`);
    const cached = Array.from({ length: 30 }, (_, i) => large.cachedRevision(`k${i}`) !== undefined);
    expect(small.cachedRevision('only')).to.be.a('number');
    expect(cached.at(-1)).to.equal(true);
    expect(cached.filter(Boolean)).to.have.length.within(3, 6);
    large.close();
    for (let i = 0; i < 5; i++) await useNew(small, `k${i}`);
    expect(small.cachedRevision('only'), 'a closed mount holds nothing').to.be.a('number');
  });

  it('counts the loaded versions of a key', async () => {
    const inner = memoryStore();
    const { engine } = newEngine({ store: inner, caches: keyCaches(13_000) });
    await engine.createKey('k', {});
    for (let i = 0; i < 9; i++) await engine.rotateKey('k');
    for (let keyVersion = 1; keyVersion <= 5; keyVersion++) await encryptOne(engine, 'k', { plaintext: fox, keyVersion });
    expect(engine.cachedRevision('k')).to.be.a('number');
    await encryptOne(engine, 'k', { plaintext: fox, keyVersion: 6 });
    expect(engine.cachedRevision('k'), 'larger than the whole cache').to.equal(undefined);
    expect(await encryptOne(engine, 'k', { plaintext: fox })).to.include({ keyVersion: 10 });
  });

  it('keeps a changed key with its view, so that the next change reads nothing', async () => {
    const inner = memoryStore();
    const { engine: other } = newEngine({ store: inner });
    await other.createKey('k', {});
    for (let i = 0; i < 3; i++) await other.rotateKey('k');
    let reads = 0;
    const get = (path: string) => {
      reads += 1;
      return inner.get(path);
    };
    const range: Store['range'] = (query) => {
      reads += 1;
      return inner.range(query);
    };
    const { engine } = newEngine({ store: { ...inner, get, range } });
    await engine.rotateKey('k');
    expect(reads).to.be.above(0);
    reads = 0;
    const raised = await engine.configureKey('k', { minDecryptionVersion: 3 });
    const { key } = await engine.rotateKey('k');
    expect(key.versions.map(({ version }) => version)).to.deep.equal([3, 4, 5, 6]);
    expect(raised.key.versions.map(({ version }) => version)).to.deep.equal([3, 4, 5]);
    expect(await engine.readKey('k')).to.equal(key);
    expect(reads).to.equal(0);
    const { key: lowered } = await engine.configureKey('k', { minDecryptionVersion: 2 });
    expect(lowered.versions.map(({ version }) => version)).to.deep.equal([2, 3, 4, 5, 6]);
    expect(await newEngine({ store: inner }).engine.readKey('k')).to.deep.equal(lowered);
  });

  it('does not keep a changed key that another node changed again, or that another state replaced, before the answer', async () => {
    const inner = memoryStore();
    const { engine: other } = newEngine({ store: inner });
    const replacing: ((changes: 'everything') => void)[] = [];
    let afterwards: (() => unknown) | undefined;
    const store: Store = {
      ...inner,
      watch: (prefix, listener) => {
        replacing.push(listener);
        return inner.watch(prefix, listener);
      },
      commit: async (transaction) => {
        const result = await inner.commit(transaction);
        const act = afterwards;
        afterwards = undefined;
        await act?.();
        return result;
      },
    };
    const { engine } = newEngine({ store });
    await engine.createKey('k', {});
    afterwards = () => other.rotateKey('k');
    expect((await engine.rotateKey('k')).key.latestVersion).to.equal(2);
    expect(engine.cachedRevision('k')).to.equal(undefined);
    expect((await engine.readKey('k')).latestVersion).to.equal(3);
    afterwards = () => {
      for (const listener of replacing) listener('everything');
    };
    expect((await engine.rotateKey('k')).key.latestVersion).to.equal(4);
    expect(engine.cachedRevision('k')).to.equal(undefined);
    await engine.rotateKey('k');
    expect(engine.cachedRevision('k')).to.equal((await inner.get(paths.key('k')))?.revision);
    afterwards = () => engine.close();
    expect((await engine.rotateKey('k')).key.latestVersion).to.equal(6);
    expect(engine.cachedRevision('k')).to.equal(undefined);
  });

  it('is emptied when the engine is closed', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    await encryptOne(engine, 'k', { plaintext: fox });
    engine.close();
    expect(engine.cachedRevision('k')).to.equal(undefined);
    await newEngine({ store }).engine.rotateKey('k');
    await engine.keyExists('k');
    expect(engine.cachedRevision('k'), 'and keeps nothing from then on').to.equal(undefined);
  });
});
