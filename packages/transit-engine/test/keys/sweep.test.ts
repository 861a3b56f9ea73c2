import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { TransitEngine } from '../../src/index.ts';
import { encodeKeyRecord } from '../../src/keys/key-record.ts';
import { decryptOne, encryptOne, everything, fox, newEngine, paths, storedKey } from '../fixtures.ts';

async function keyWithVersions(engine: TransitEngine, name: string, versions: number): Promise<void> {
  await engine.createKey(name, {});
  for (let version = 2; version <= versions; version++) await engine.rotateKey(name);
  await engine.configureKey(name, { deletionAllowed: true });
}

async function sweepToEnd(engine: TransitEngine, limit: number): Promise<{ removed: number; calls: number; most: number }> {
  let [removed, calls, most] = [0, 0, 0];
  for (;;) {
    const step = await engine.sweep(limit);
    removed += step.removed;
    calls += 1;
    most = Math.max(most, step.removed);
    if (step.finished) return { removed, calls, most };
  }
}

describe('the sweep', () => {
  it('deletes the versions of deleted keys and no others', async () => {
    const { engine, store } = newEngine();
    for (const name of ['a', 'b', 'c', 'd']) await keyWithVersions(engine, name, 5);
    await engine.deleteKey('b');
    await engine.deleteKey('d');
    await engine.createKey('d', {});
    const { ciphertext } = await encryptOne(engine, 'd', { plaintext: fox });
    expect(await sweepToEnd(engine, 1000)).to.include({ removed: 10, calls: 1 });
    expect(Object.keys(await everything(store)).filter((path) => path.startsWith(paths.versions))).to.have.lengthOf(11);
    expect(await decryptOne(engine, 'd', { ciphertext })).to.deep.equal({ plaintext: fox });
    expect(await sweepToEnd(engine, 1000)).to.include({ removed: 0 });
  });

  it('does limited work in each call, and continues where it stopped', async () => {
    const { engine } = newEngine();
    for (const name of ['a', 'b', 'c']) await keyWithVersions(engine, name, 7);
    for (const name of ['a', 'c']) await engine.deleteKey(name);
    const { removed, calls, most } = await sweepToEnd(engine, 3);
    expect(removed).to.equal(14);
    expect(calls).to.be.at.least(5);
    expect(most).to.be.at.most(3);
  });

  it('needs no memory: another process finishes the work', async () => {
    const store = memoryStore();
    const before = newEngine({ store }).engine;
    await keyWithVersions(before, 'a', 4);
    await before.deleteKey('a');
    before.close();
    expect(await sweepToEnd(newEngine({ store }).engine, 100)).to.include({ removed: 4 });
    expect(await everything(store)).to.deep.equal({});
  });

  it('deletes the versions that a trim left', async () => {
    const { engine, store } = newEngine();
    await keyWithVersions(engine, 'a', 6);
    // As after a trim of more versions than one transaction deletes.
    const record = { ...(await storedKey(store, 'a')), minDecryptionVersion: 5, minEncryptionVersion: 5, minAvailableVersion: 5 };
    await store.commit({ conditions: [], writes: [{ path: paths.key('a'), value: encodeKeyRecord(record) }] });
    expect(await sweepToEnd(engine, 2)).to.include({ removed: 4 });
    expect((await engine.readKey('a')).versions.map(({ version }) => version)).to.deep.equal([5, 6]);
  });

  it('deletes the versions of a key whose lowest one was deleted after its name was read', async () => {
    const inner = memoryStore();
    const { engine } = newEngine({ store: inner });
    await keyWithVersions(engine, 'a', 6);
    const record = { ...(await storedKey(inner, 'a')), minDecryptionVersion: 5, minEncryptionVersion: 5, minAvailableVersion: 5 };
    await inner.commit({ conditions: [], writes: [{ path: paths.key('a'), value: encodeKeyRecord(record) }] });
    let isFirst = true;
    const store: Store = {
      ...inner,
      paths: async (query) => {
        const page = await inner.paths(query);
        const [path = ''] = page.paths;
        if (isFirst) await inner.commit({ conditions: [], writes: [{ path, value: null }] });
        isFirst = false;
        return page;
      },
    };
    expect(await newEngine({ store }).engine.sweep(100)).to.deep.equal({ removed: 3, finished: true });
  });

  it('deletes nothing if the state has changed since it was read', async () => {
    const inner = memoryStore();
    const { engine } = newEngine({ store: inner });
    await keyWithVersions(engine, 'a', 2);
    await engine.deleteKey('a');
    const sweeper = newEngine({
      store: {
        ...inner,
        commit: async (transaction) => {
          await engine.createKey('a', {});
          return inner.commit(transaction);
        },
      },
    }).engine;
    expect(await sweeper.sweep(100)).to.deep.equal({ removed: 0, finished: true });
    expect(await sweepToEnd(engine, 100)).to.include({ removed: 2 });
    expect(await engine.keyExists('a')).to.equal(true);
  });

  it('reads the names of many keys at once, and the whole list although a page has no visible name', async () => {
    const inner = memoryStore();
    const { engine } = newEngine({ store: inner });
    for (let key = 0; key < 150; key++) await engine.createKey(`key-${key}`, {});
    await keyWithVersions(engine, 'gone', 3);
    await engine.deleteKey('gone');
    let pages = 0;
    const store: Store = {
      ...inner,
      range: (query) => {
        pages += 1;
        return inner.range(query);
      },
      paths: async (query) => {
        pages += 1;
        // As after a restore, when the names of the replaced state come first.
        return query.after === undefined ? { paths: [], next: paths.versions } : inner.paths(query);
      },
    };
    expect(await newEngine({ store }).engine.sweep(1000)).to.deep.equal({ removed: 3, finished: true });
    expect(pages).to.be.at.most(6);
  });
});
