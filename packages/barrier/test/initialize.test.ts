import { randomBytes } from 'node:crypto';
import { memoryStore, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { InitializeRequest, SealConfig } from '../src/index.ts';
import { faultyStore } from './faulty-store.ts';
import { codeOf, everything, messageOf, openBarrier, read, threeOfTwo, unsealWith, write } from './fixtures.ts';

const staticSeal: SealConfig = { type: 'static', current: { id: 'k1', key: randomBytes(32) } };

describe('initialize', () => {
  it('returns shares that unseal, and writes the initial records', async () => {
    const barrier = await openBarrier(memoryStore());
    const { kind, shares } = await barrier.initialize(threeOfTwo, [write('a/b', 'first')]);
    expect(kind).to.equal('key');
    expect(shares).to.have.lengthOf(3);
    expect(barrier.sealStatus).to.deep.include({ initialized: true, sealed: true, t: 2, n: 3, recoverySeal: false });
    await unsealWith(barrier, shares.slice(1));
    expect(await read(barrier, 'a/b')).to.equal('first');
  });

  it('with one share returns the key itself, which unseals alone', async () => {
    const barrier = await openBarrier(memoryStore());
    const { shares } = await barrier.initialize({ secretShares: 1, secretThreshold: 1 }, []);
    expect(shares.map(({ length }) => length)).to.deep.equal([32]);
    await unsealWith(barrier, shares);
    expect(barrier.state.sealed).to.equal(false);
  });

  it('with a static seal returns recovery shares and unseals at once', async () => {
    const barrier = await openBarrier(memoryStore(), { seal: staticSeal });
    const { kind, shares } = await barrier.initialize({ recoveryShares: 3, recoveryThreshold: 2 }, [write('a', 'first')]);
    expect({ kind, shares: shares.length }).to.deep.equal({ kind: 'recovery', shares: 3 });
    expect(barrier.sealStatus).to.deep.include({
      type: 'static',
      initialized: true,
      sealed: false,
      t: 2,
      n: 3,
      recoverySeal: true,
    });
    expect(await read(barrier, 'a')).to.equal('first');
  });

  for (const [request, message] of [
    [{}, 'invalid seal configuration: shares must be at least one'],
    [{ secretShares: 1 }, 'invalid seal configuration: threshold must be at least one'],
    [{ secretShares: 2, secretThreshold: 3 }, 'invalid seal configuration: threshold cannot be larger than shares'],
    [
      { secretShares: 5, secretThreshold: 1 },
      'invalid seal configuration: threshold must be greater than one for multiple shares',
    ],
    [{ secretShares: 256, secretThreshold: 2 }, 'invalid seal configuration: shares must be less than 256'],
    [{ secretShares: 2.5, secretThreshold: 2 }, 'invalid seal configuration: shares and threshold must be whole numbers'],
    [{ secretShares: -1, secretThreshold: -1 }, 'invalid seal configuration: shares must be at least one'],
    [
      { secretShares: 1, secretThreshold: 1, recoveryShares: 1, recoveryThreshold: 1 },
      'parameters recovery_shares,recovery_threshold not applicable to seal type shamir',
    ],
  ] satisfies [InitializeRequest, string][])
    it(`refuses ${JSON.stringify(request)} and writes nothing`, async () => {
      const store = memoryStore();
      const barrier = await openBarrier(store);
      expect(await messageOf(barrier.initialize(request, []))).to.equal(message);
      expect(await everything(store)).to.have.property('size', 0);
    });

  it('refuses secret shares for a static seal', async () => {
    const barrier = await openBarrier(memoryStore(), { seal: staticSeal });
    expect(await messageOf(barrier.initialize(threeOfTwo, []))).to.equal(
      'parameters secret_shares,secret_threshold not applicable to seal type static',
    );
  });

  it('accepts zeros for parameters of the other seal type, as command-line clients send them', async () => {
    const barrier = await openBarrier(memoryStore());
    await barrier.initialize({ ...threeOfTwo, recoveryShares: 0, recoveryThreshold: 0 }, []);
  });

  it('succeeds only once, whatever the second request contains', async () => {
    const store = memoryStore();
    const barrier = await openBarrier(store);
    await barrier.initialize(threeOfTwo, []);
    const before = await everything(store);
    for (const request of [threeOfTwo, {}, { recoveryShares: 1 }])
      expect(await messageOf(barrier.initialize(request, []))).to.match(/already initialized/);
    expect(await everything(store)).to.deep.equal(before);
  });

  it('succeeds only once when two nodes do it at the same time', async () => {
    const store = memoryStore();
    const barriers = await Promise.all([openBarrier(store), openBarrier(store)]);
    const outcomes = await Promise.allSettled(barriers.map((barrier) => barrier.initialize(threeOfTwo, [])));
    expect(outcomes.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected']);
    const shares = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value.shares : []));
    for (const barrier of barriers) {
      await unsealWith(barrier, shares.slice(0, 2));
      expect(barrier.state.sealed).to.equal(false);
    }
  });

  it('writes nothing when the commit fails, and can be retried', async () => {
    const store = faultyStore(memoryStore());
    const barrier = await openBarrier(store);
    store.beforeCommit = () => Promise.reject(new StoreError('disk_low', 'the disk is full'));
    expect(await codeOf(barrier.initialize(threeOfTwo, [write('a', 'b')]))).to.equal('disk_low');
    expect(await everything(store)).to.have.property('size', 0);
    expect(barrier.state).to.deep.equal({ initialized: false, sealed: true });
    delete store.beforeCommit;
    await unsealWith(barrier, (await barrier.initialize(threeOfTwo, [])).shares);
    expect(barrier.state).to.deep.equal({ initialized: true, sealed: false });
  });

  it("refuses initial records at the barrier's own paths", async () => {
    const barrier = await openBarrier(memoryStore());
    expect(await codeOf(barrier.initialize(threeOfTwo, [write('core/keyring', 'x')]))).to.equal('reserved_path');
  });

  it('is visible to another node over the same store', async () => {
    const store = memoryStore();
    const other = await openBarrier(store);
    const notified = new Promise((resolve) => other.onStateChange(resolve));
    const { shares } = await (await openBarrier(store)).initialize(threeOfTwo, []);
    expect(await notified).to.deep.equal({ initialized: true, sealed: true });
    await unsealWith(other, shares.slice(0, 2));
    expect(other.state.sealed).to.equal(false);
  });
});
