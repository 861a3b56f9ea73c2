import { randomBytes } from 'node:crypto';
import { memoryStore, type ReplicatedWrite, type Store, type Write } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { type Barrier, ProviderError, type SealConfig } from '../../src/index.ts';
import { codeOf, openBarrier, put, read, unsealedBarrier } from '../fixtures.ts';
import { FakeProvider } from './fake-provider.ts';
import { keysOf, withRecord } from './transferred-keys.ts';

const local = ['core/cluster-authority', 'core/seal', 'core/unseal-key'];
const staticSeal = (id: string): SealConfig => ({ type: 'static', current: { id, key: randomBytes(32) } });

/** A cluster whose seal needs no shares, and its store. */
interface Cluster {
  barrier: Barrier;
  readonly store: Store;
  readonly seal: SealConfig;
  shares: readonly Uint8Array[];
}

async function cluster(seal: SealConfig): Promise<Cluster> {
  const store = memoryStore();
  const barrier = await openBarrier(store, { seal });
  const { shares } = await barrier.initialize({ recoveryShares: 2, recoveryThreshold: 2 }, []);
  return { barrier, store, seal, shares };
}

async function rekey(primary: Cluster): Promise<void> {
  const { nonce } = await primary.barrier.rekey.start({ shares: 3, threshold: 3, requireVerification: false });
  for (const share of primary.shares) {
    const step = await primary.barrier.rekey.update({ nonce, share });
    if (step.complete && 'shares' in step) primary.shares = step.shares;
  }
}

const isLocal = (path: string): boolean => local.includes(path);

/** Returns the replicated records of the primary that have changed since the revision. */
async function changesAfter({ store }: Cluster, revision: number): Promise<ReplicatedWrite[]> {
  const { records } = await store.range({ prefix: '' });
  return records.filter((record) => record.revision > revision && !isLocal(record.path));
}

/** Commits records of the primary and local ones in one entry, as a secondary does. */
async function follow(secondary: Cluster, writes: readonly Write[], records: readonly ReplicatedWrite[]): Promise<void> {
  const conditions = records.map(({ path, revision }) => ({ path, revision }));
  const all = [...writes, ...records].map(({ path, value }) => ({ path, value }));
  expect((await secondary.store.commit({ conditions, writes: all })).outcome).to.equal('committed');
}

/** Makes the state of the primary that of the secondary. */
async function receive(primary: Cluster, secondary: Cluster): Promise<void> {
  await primary.barrier.transfer.publishRecoveryShares();
  const records = await secondary.barrier.transfer.localRecords(local, await keysOf(primary));
  await follow(secondary, await changesAfter(primary, 0), records);
}

/** A process that has only the records and the seal's key. */
const restarted = async ({ store, seal }: Cluster): Promise<Barrier> => {
  const barrier = await openBarrier(store, { seal });
  await barrier.autoUnseal();
  return barrier;
};

const provider = (fake: FakeProvider): SealConfig => ({ type: 'transit', provider: fake });
const kinds: readonly { readonly name: string; readonly seal: () => SealConfig }[] = [
  { name: 'static', seal: () => staticSeal('west') },
  { name: 'transit', seal: () => provider(new FakeProvider()) },
];

describe('a seal of its own on a secondary', () => {
  for (const primarySeal of kinds)
    for (const secondarySeal of kinds)
      it(`of type ${secondarySeal.name} opens the state of a primary with a seal of type ${primarySeal.name}`, async () => {
        const [primary, secondary] = [await cluster(primarySeal.seal()), await cluster(secondarySeal.seal())];
        await put(primary.barrier, 'transit/key', 'of the primary');
        await put(secondary.barrier, 'core/cluster-authority', 'of the secondary');
        await receive(primary, secondary);
        secondary.barrier = await restarted(secondary);
        expect(await read(secondary.barrier, 'transit/key')).to.equal('of the primary');
        expect(await read(secondary.barrier, 'core/cluster-authority')).to.equal('of the secondary');

        for (const change of [() => primary.barrier.rotation.rotate(), () => rekey(primary), () => rekey(primary)]) {
          const { index } = await primary.store.commit({ conditions: [], writes: [] });
          await change();
          const writes = await changesAfter(primary, index);
          const records = await secondary.barrier.transfer.ownSealFor(writes);
          if (records === 'unknown') throw new Error('the root key is unknown');
          await follow(secondary, writes, records);
          const text = `after entry ${index}`;
          await put(primary.barrier, 'transit/key', text);
          const { revision = 0 } = (await primary.store.get('transit/key')) ?? {};
          await follow(secondary, await changesAfter(primary, revision - 1), []);
          const crashed = await restarted(secondary);
          expect(await read(crashed, 'core/cluster-authority')).to.equal('of the secondary');
          expect(await read(crashed, 'transit/key')).to.equal(text);
          expect(crashed.sealStatus).to.include({ t: primary.shares.length, n: primary.shares.length });
          crashed.close();
        }
        const { shares } = primary;
        const { nonce } = await secondary.barrier.rekey.start({ shares: 1, threshold: 1, requireVerification: false });
        for (const share of shares.slice(1)) await secondary.barrier.rekey.update({ nonce, share });
        const step = await secondary.barrier.rekey.update({ nonce, share: shares[0] ?? Buffer.alloc(33) });
        expect(step.complete, "the recovery shares are the primary's").to.equal(true);
      });

  it('does not commit a rekey whose root key it cannot decrypt', async () => {
    const [primary, secondary] = [await cluster(staticSeal('east')), await cluster(staticSeal('west'))];
    await receive(primary, secondary);
    secondary.barrier = await restarted(secondary);
    const { index } = await primary.store.commit({ conditions: [], writes: [] });
    await primary.barrier.rotation.rotate();
    await rekey(primary); // under the key of the rotation, which only the new root key opens
    const writes = await changesAfter(primary, index);
    expect(await secondary.barrier.transfer.ownSealFor(writes)).to.equal('unknown');
    await receive(primary, secondary);
    expect((await restarted(secondary)).state.sealed).to.equal(false);
  });

  it('does not commit a rekey while its provider fails, and keeps the revisions of the records that it replaces', async () => {
    const fake = new FakeProvider();
    const [primary, secondary] = [await cluster(staticSeal('east')), await cluster(provider(fake))];
    await receive(primary, secondary);
    secondary.barrier = await restarted(secondary);
    const { index } = await primary.store.commit({ conditions: [], writes: [] });
    await rekey(primary);
    const writes = await changesAfter(primary, index);
    fake.failure = new ProviderError('unreachable', 'no answer');
    expect(await codeOf(secondary.barrier.transfer.ownSealFor(writes))).to.equal('seal_unavailable');
    fake.failure = undefined;
    const present = await Promise.all(local.slice(1).map((path) => secondary.store.get(path)));
    fake.rotate();
    const records = await secondary.barrier.transfer.ownSealFor(writes);
    if (records === 'unknown') throw new Error('the root key is unknown');
    expect(records.map(({ revision }) => revision)).to.deep.equal(present.map((record) => record?.revision));
    expect((await secondary.barrier.maintain('seal')).rewrapped, 'a new version of the key').to.equal(true);
    const conditions = records.map(({ path, revision }) => ({ path, revision }));
    expect((await secondary.store.commit({ conditions, writes })).outcome, 'it has changed').to.equal('conflict');
    expect((await restarted(secondary)).state.sealed).to.equal(false);
  });

  it('refuses a state without recovery shares, and a seal that needs shares', async () => {
    const [primary, secondary] = [await cluster(staticSeal('east')), await cluster(staticSeal('west'))];
    await primary.barrier.transfer.publishRecoveryShares();
    const keys = await keysOf(primary);
    const without = withRecord(keys, 'core/recovery-shares', undefined);
    expect(await codeOf(secondary.barrier.transfer.localRecords(local, without))).to.equal('barrier_corrupt');
    const { barrier } = await unsealedBarrier();
    expect(await codeOf(barrier.transfer.localRecords(local, keys))).to.equal('seal_mismatch');
  });
});
