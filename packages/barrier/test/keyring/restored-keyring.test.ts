import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { everything, put, read, unsealedBarrier, write } from '../fixtures.ts';

const keyringPath = 'core/keyring';

/** Two histories of one cluster, each with its own key for term 2 after a rotation. `restore` brings back the first history. */
async function diverged() {
  const { barrier, store } = await unsealedBarrier({ store: memoryStore({ reportsEverything: true }) });
  await put(barrier, 'early', 'e');
  const beginning = (await everything(store)).get(keyringPath);
  await barrier.rotation.rotate();
  await put(barrier, 'late', 'first history');
  const first = await everything(store);
  const commit = (path: string, value: Buffer | undefined) =>
    store.commit({ conditions: [], writes: [{ path, value: value ?? null }] });
  await commit(keyringPath, beginning);
  await barrier.rotation.rotate();
  await put(barrier, 'late', 'second history');
  const restore = () =>
    store.commit({ conditions: [], writes: [keyringPath, 'late'].map((path) => ({ path, value: first.get(path) ?? null })) });
  return { barrier, store, restore };
}

describe('a keyring from a restore', () => {
  it('is used for reading at once, even if one of its terms was a different key before', async () => {
    const { barrier, restore } = await diverged();
    expect(await read(barrier, 'late')).to.equal('second history');
    const restored = restore();
    expect(await read(barrier, 'late')).to.equal('first history');
    await restored;
    expect(barrier.state.sealed).to.equal(false);
  });

  it('encrypts a write that was in flight, so that it stays readable', async () => {
    const { barrier, restore } = await diverged();
    const restored = restore();
    // The new keyring is not loaded yet.
    const written = await barrier.store.commit({ conditions: [], writes: [write('during', 'd')] });
    await restored;
    expect(written.outcome).to.equal('committed');
    expect([await read(barrier, 'during'), await read(barrier, 'early')]).to.deep.equal(['d', 'e']);
    await barrier.rotation.rotate();
    expect(await read(barrier, 'during')).to.equal('d');
  });

  it("reports a conflict of a write's own conditions to the caller", async () => {
    const { barrier, restore } = await diverged();
    const restored = restore();
    const conditions = [{ path: 'early', revision: 0 }];
    const { outcome } = await barrier.store.commit({ conditions, writes: [write('during', 'd')] });
    await restored;
    expect([outcome, await read(barrier, 'during')]).to.deep.equal(['conflict', undefined]);
  });
});
