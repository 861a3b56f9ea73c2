import { randomBytes } from 'node:crypto';
import { memoryStore, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import { defaultRotation } from '../../src/index.ts';
import { newKeyring } from '../../src/keyring/keyring.ts';
import { LoadedKeys } from '../../src/keyring/loaded-keys.ts';
import { SharedKeyring } from '../../src/keyring/shared-keyring.ts';
import { termOf } from '../../src/keyring/value.ts';
import { faultyStore } from '../faulty-store.ts';
import { codeOf, everything, openBarrier, put, read, unsealedBarrier, unsealWith } from '../fixtures.ts';

describe('rotate', () => {
  it('encrypts new values under a new term, and values of old terms stay readable, also after a restart', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    for (const term of [1, 2, 3]) {
      await put(barrier, `a/${term}`, `under ${term}`);
      expect(termOf('', (await store.get(`a/${term}`))?.value ?? Buffer.alloc(0))).to.equal(term);
      await barrier.rotation.rotate();
    }
    barrier.close();
    const again = await openBarrier(store);
    await unsealWith(again, shares.slice(0, 2));
    expect(again.rotation.keyStatus().term).to.equal(4);
    for (const term of [1, 2, 3]) expect(await read(again, `a/${term}`)).to.equal(`under ${term}`);
  });

  it('changes nothing when the commit fails', async () => {
    const store = faultyStore(memoryStore());
    const { barrier } = await unsealedBarrier({ store });
    const before = await everything(store);
    store.beforeCommit = () => Promise.reject(new StoreError('not_leader', 'not the leader'));
    expect(await codeOf(barrier.rotation.rotate())).to.equal('not_leader');
    expect(barrier.rotation.keyStatus().term).to.equal(1);
    expect(await everything(store)).to.deep.equal(before);
  });

  it('retries from a fresh read when another node was faster', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier, shares } = await unsealedBarrier({ store: faulty });
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    faulty.beforeCommit = () => {
      delete faulty.beforeCommit;
      return other.rotation.rotate();
    };
    await barrier.rotation.rotate();
    expect(barrier.rotation.keyStatus().term).to.equal(3);
  });

  it('gives up with conflict after too many retries', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier, shares } = await unsealedBarrier({ store: faulty });
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    faulty.beforeCommit = () => other.rotation.rotate();
    expect(await codeOf(barrier.rotation.rotate())).to.equal('conflict');
  });

  it('by another node is followed: its values under the new term are readable at once', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    await other.rotation.rotate();
    await put(other, 'a', 'new');
    expect(await read(barrier, 'a')).to.equal('new');
    expect(barrier.rotation.keyStatus().term).to.equal(2);
  });

  it('by another node is followed when the watch reports only that everything may have changed', async () => {
    const { barrier, store, shares } = await unsealedBarrier({ store: memoryStore({ reportsEverything: true }) });
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    await other.rotation.rotate();
    for (let turn = 0; turn < 1000 && barrier.rotation.keyStatus().term !== 2; turn++) await new Promise(setImmediate);
    expect(barrier.rotation.keyStatus().term).to.equal(2);
  });

  it('by another node is loaded by a read when the watch could not load it', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier, shares } = await unsealedBarrier({ store: faulty });
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    faulty.beforeGet = () => Promise.reject(new StoreError('busy', 'busy'));
    await other.rotation.rotate();
    await put(other, 'a', 'new');
    delete faulty.beforeGet;
    expect(await read(barrier, 'a')).to.equal('new');
  });

  it('creates one term per concurrent caller', async () => {
    const { barrier } = await unsealedBarrier();
    await Promise.all([barrier.rotation.rotate(), barrier.rotation.rotate(), barrier.rotation.rotate()]);
    expect(barrier.rotation.keyStatus().term).to.equal(4);
  });
});

describe('keyStatus', () => {
  it('counts the values written since the newest key was installed', async () => {
    let valuesWritten = 10;
    let nowMs = 1_700_000_000_000;
    const { barrier } = await unsealedBarrier({ valuesWritten: () => valuesWritten, clock: clockOf(() => nowMs) });
    valuesWritten = 25;
    expect(barrier.rotation.keyStatus()).to.deep.equal({ term: 1, installTime: new Date(nowMs), encryptions: 15 });
    nowMs += 5000;
    await barrier.rotation.rotate();
    expect(barrier.rotation.keyStatus()).to.deep.equal({ term: 2, installTime: new Date(nowMs), encryptions: 0 });
    valuesWritten = 26;
    expect(barrier.rotation.keyStatus().encryptions).to.equal(1);
  });

  it("counts with the store's valuesWritten", async () => {
    const store = memoryStore();
    const { barrier } = await unsealedBarrier({ store, valuesWritten: () => store.status().valuesWritten });
    await barrier.rotation.rotate();
    const before = barrier.rotation.keyStatus().encryptions;
    await put(barrier, 'a', 'b');
    await put(barrier, 'a', 'c');
    expect(barrier.rotation.keyStatus().encryptions - before).to.equal(2);
  });
});

describe('maintain', () => {
  it('rotates when the newest key has been used often enough, and only then', async () => {
    let valuesWritten = 0;
    const { barrier } = await unsealedBarrier({ valuesWritten: () => valuesWritten });
    await barrier.rotation.setConfig({ ...defaultRotation, maxOperations: 1_000_000 });
    valuesWritten = 999_999;
    expect(await barrier.maintain()).to.deep.equal({ migrated: false, rewrapped: false, rotated: false });
    valuesWritten = 1_000_000;
    expect(await barrier.rotation.isDue()).to.equal(true);
    expect(await barrier.maintain()).to.deep.equal({ migrated: false, rewrapped: false, rotated: true });
    expect(await barrier.maintain()).to.deep.equal({ migrated: false, rewrapped: false, rotated: false });
    expect(barrier.rotation.keyStatus().term).to.equal(2);
  });

  it('rotates after the interval', async () => {
    let nowMs = 0;
    const intervalMs = 24 * 60 * 60 * 1000;
    const { barrier } = await unsealedBarrier({ clock: clockOf(() => nowMs), rotation: { ...defaultRotation, intervalMs } });
    nowMs = intervalMs;
    expect(await barrier.maintain()).to.have.property('rotated', true);
    expect(await barrier.maintain()).to.have.property('rotated', false);
  });

  it('does nothing while sealed', async () => {
    const barrier = await openBarrier(memoryStore());
    expect(await barrier.maintain()).to.deep.equal({ migrated: false, rewrapped: false, rotated: false });
  });
});

describe('the rotation configuration', () => {
  it('is the default until a configuration is stored, which is encrypted like any value', async () => {
    const { barrier, store } = await unsealedBarrier();
    expect(await barrier.rotation.config()).to.deep.equal({ enabled: true, maxOperations: 2147483648, intervalMs: 0 });
    const config = { enabled: false, maxOperations: 5_000_000, intervalMs: 0 };
    await barrier.rotation.setConfig(config);
    expect(await barrier.rotation.config()).to.deep.equal(config);
    expect(Buffer.from((await store.get('core/rotation-config'))?.value ?? []).includes('5000000')).to.equal(false);
  });

  it('is refused if it would never or always rotate, and the old configuration stays', async () => {
    const { barrier } = await unsealedBarrier();
    expect(await codeOf(barrier.rotation.setConfig({ ...defaultRotation, maxOperations: 1 }))).to.equal(
      'invalid_rotation_config',
    );
    expect(await barrier.rotation.config()).to.deep.equal(defaultRotation);
  });
});

describe('loaded keys', () => {
  const keys = () => ({
    rootKey: randomBytes(32),
    keyring: newKeyring({ installedMs: 0, valuesAtInstall: 0 }),
  });
  const zero = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0);

  it('are zero in memory once wiped', () => {
    const loaded = new LoadedKeys(memoryStore(), new SharedKeyring(), undefined);
    const held = keys();
    loaded.installRead(held, 1);
    loaded.wipe();
    expect([held.rootKey, held.keyring.encoded, held.keyring.newest.key].every(zero)).to.equal(true);
    expect(loaded.loaded).to.equal(false);
  });

  it('are zero in memory once replaced, except a root key that stays in use', () => {
    const loaded = new LoadedKeys(memoryStore(), new SharedKeyring(), undefined);
    const [first, second, third] = [keys(), keys(), keys()];
    loaded.installRead(first, 1);
    loaded.installRead({ ...second, rootKey: first.rootKey }, 2);
    expect(zero(first.keyring.encoded)).to.equal(true);
    expect(zero(first.rootKey)).to.equal(false);
    loaded.installRead(third, 1);
    expect(zero(first.rootKey) && zero(second.keyring.encoded)).to.equal(true);
    expect(zero(third.rootKey) || zero(third.keyring.encoded)).to.equal(false);
  });
});
