import { expect } from 'chai';
import { openReadingView } from '../../src/index.ts';
import { codeOf, put, unsealedBarrier, unsealWith, write } from '../fixtures.ts';

const memoryOf = ({ sharedKeyring }: Awaited<ReturnType<typeof unsealedBarrier>>['barrier']): SharedArrayBuffer => {
  if (sharedKeyring.memory === undefined) throw new Error('no keyring is shared');
  return sharedKeyring.memory;
};

describe('the keyring that other threads read with', () => {
  it('opens every value, and writes none', async () => {
    const { barrier, store } = await unsealedBarrier();
    await put(barrier, 'a', 'first');
    await barrier.rotation.rotate();
    await put(barrier, 'b', 'second');
    const view = openReadingView(store, memoryOf(barrier));
    expect(String((await view.get('a'))?.value)).to.equal('first');
    expect(String((await view.get('b'))?.value)).to.equal('second');
    expect((await view.range({ prefix: '' })).records.map(({ path }) => path)).to.include.members(['a', 'b']);
    expect(await codeOf(view.commit({ conditions: [], writes: [write('c', 'x')] }))).to.equal('not_leader');
    expect(await store.get('c')).to.equal(undefined);
  });

  it('is wiped in every thread when the barrier is sealed', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    await put(barrier, 'a', 'first');
    const memory = memoryOf(barrier);
    const view = openReadingView(store, memory);
    barrier.seal();
    expect(new Uint8Array(memory).every((byte) => byte === 0)).to.equal(true);
    expect(barrier.sharedKeyring.memory).to.equal(undefined);
    expect(await codeOf(view.get('a'))).to.equal('sealed');
    expect(() => openReadingView(store, memory)).to.throw(/not a keyring/);
    await unsealWith(barrier, shares.slice(0, 2));
    expect(String((await openReadingView(store, memoryOf(barrier)).get('a'))?.value)).to.equal('first');
  });

  it('is replaced by a rotation, and the old copy opens nothing', async () => {
    const { barrier, store } = await unsealedBarrier();
    await put(barrier, 'a', 'first');
    const old = openReadingView(store, memoryOf(barrier));
    let changes = 0;
    barrier.sharedKeyring.onChange(() => {
      changes += 1;
    });
    await barrier.rotation.rotate();
    expect(changes).to.equal(1);
    expect(await codeOf(old.get('a'))).to.equal('sealed');
  });
});
