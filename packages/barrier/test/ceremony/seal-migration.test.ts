import { randomBytes } from 'node:crypto';
import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import {
  type Barrier,
  defaultRotation,
  idOf,
  type OneSeal,
  ProviderError,
  type SealConfig,
  type SealType,
} from '../../src/index.ts';
import { openJoinSecret } from '../../src/seal/join-secret.ts';
import { faultyStore } from '../faulty-store.ts';
import { codeOf, messageOf, openBarrier, put, read, unsealWith } from '../fixtures.ts';
import { FakeProvider } from '../seal/fake-provider.ts';

const none = Buffer.alloc(0);
/** One seal of each type. */
const seals = (): Readonly<Record<'shamir' | 'static' | 'transit' | 'other', OneSeal>> => ({
  shamir: { type: 'shamir' },
  static: { type: 'static', current: { id: 'k', key: randomBytes(32) } },
  transit: { type: 'transit', provider: new FakeProvider() },
  other: { type: 'transit', provider: new FakeProvider(), name: 'other' },
});
type Kind = keyof ReturnType<typeof seals>;
const kinds: readonly Kind[] = ['shamir', 'static', 'transit', 'other'];
/** Types and names as the status of the seal shows them. */
const idOfKind = (kind: Kind): object => idOf(seals()[kind]);
const pairs = kinds.flatMap((from) => kinds.filter((to) => to !== from).map((to) => ({ from, to })));

const counts = (type: SealType) =>
  type === 'shamir' ? { secretShares: 3, secretThreshold: 2 } : { recoveryShares: 3, recoveryThreshold: 2 };

async function initialized(seal: SealConfig) {
  const store = memoryStore();
  const barrier = await openBarrier(store, { seal });
  const { shares } = await barrier.initialize(counts(seal.type), []);
  await opened(barrier, shares);
  await put(barrier, 'a', 'kept');
  return { store, barrier, shares };
}

/** Unseals as the type of the seal demands. */
const opened = async (barrier: Barrier, shares: readonly Buffer[]): Promise<void> => {
  if (!barrier.state.sealed) return;
  if (barrier.sealStatus.type === 'shamir') await unsealWith(barrier, shares.slice(0, 2));
  else await barrier.autoUnseal();
};
const give = async (barrier: Barrier, shares: readonly Buffer[]): Promise<void> => {
  for (const share of shares.slice(1)) await barrier.migrate(share);
};
/** Returns the kind of the seal in the record. */
const kindIn = async (store: Store): Promise<unknown> => {
  const { type, name } = JSON.parse(Buffer.from((await store.get('core/seal'))?.value ?? none).toString());
  return name ?? type;
};
const typeIn = async (store: Store): Promise<unknown> =>
  JSON.parse(Buffer.from((await store.get('core/seal'))?.value ?? none).toString()).type;

describe('a seal migration', () => {
  for (const { from, to } of pairs) {
    describe(`from ${from} to ${to}`, () => {
      it('keeps the shares and the data, and needs the old seal no longer', async () => {
        const { [from]: old, [to]: next } = seals();
        const { store, shares } = await initialized(old);
        const written: string[] = [];
        const onSealWritten = (change: string) => void written.push(change);
        const barrier = await openBarrier(store, { seal: { ...next, migrateFrom: old }, onSealWritten });
        await opened(barrier, shares);
        expect(barrier.sealStatus).to.include({ ...idOfKind(from), migration: true });
        await give(barrier, shares);
        expect(written).to.deep.equal(['migrated']);
        expect(barrier.sealStatus).to.include({ ...idOfKind(to), migration: false, sealed: false, t: 2, n: 3 });
        expect(await read(barrier, 'a')).to.equal('kept');
        const { nonce } = await barrier.rootGeneration.start(Buffer.from('abcd'));
        await barrier.rootGeneration.update({ nonce, share: shares[0] ?? none }, async () => 'wxyz');
        expect(await barrier.rootGeneration.update({ nonce, share: shares[1] ?? none }, async () => 'wxyz')).to.include({
          complete: true,
        });
        const alone = await openBarrier(store, { seal: next });
        await opened(alone, shares);
        expect(await read(alone, 'a')).to.equal('kept');
        expect(await codeOf(openBarrier(store, { seal: old }).then((one) => opened(one, shares)))).to.equal('seal_mismatch');
        expect((await store.get('core/unseal-key')) === undefined).to.equal(to === 'static');
        await alone.wrapForJoin(randomBytes(32));
      });

      it('gives a new root key, so that an old copy of the seal record does not open the present state', async () => {
        const { [from]: old, [to]: next } = seals();
        const { store, shares } = await initialized(old);
        const before = (await store.get('core/seal'))?.value ?? none;
        const barrier = await openBarrier(store, { seal: { ...next, migrateFrom: old } });
        await opened(barrier, shares);
        await give(barrier, shares);
        await store.commit({ conditions: [], writes: [{ path: 'core/seal', value: before }] });
        const thief = await openBarrier(store, { seal: old });
        expect(await codeOf(opened(thief, shares))).to.equal('barrier_corrupt');
      });

      it('is followed by another unsealed node, and by a sealed one that accepts both', async () => {
        const { [from]: old, [to]: next } = seals();
        const { store, barrier: unsealed, shares } = await initialized(old);
        const both: SealConfig = { ...next, migrateFrom: old };
        const sealed = await openBarrier(store, { seal: both });
        const leader = await openBarrier(store, { seal: both });
        await opened(leader, shares);
        await give(leader, shares);
        await put(leader, 'b', 'after');
        expect(await read(unsealed, 'b')).to.equal('after'); // it has the old configuration, and its keys follow
        await opened(sealed, shares);
        expect(await read(sealed, 'b')).to.equal('after');
      });

      it('leaves, after a crash at any step, records that open with the old seal or with the new one', async () => {
        const types = new Set<unknown>();
        for (let steps = 0, finished = false; !finished; steps += 1)
          for (const committed of [false, true]) {
            const { [from]: old, [to]: next } = seals();
            const { store, shares } = await initialized(old);
            const both: SealConfig = { ...next, migrateFrom: old };
            const crashing = crashingStore(store, steps, committed);
            finished = await openBarrier(crashing, { seal: both })
              .then(
                async (barrier) => {
                  await opened(barrier, shares);
                  await give(barrier, shares);
                  return !barrier.sealStatus.migration && !crashing.crashed();
                },
                () => false,
              )
              .catch(() => false);
            const kind = await kindIn(store);
            types.add(kind);
            const [present, other] = kind === from ? [old, next] : [next, old];
            for (const seal of [both, present]) {
              const restarted = await openBarrier(store, { seal });
              await opened(restarted, shares);
              expect(await read(restarted, 'a'), `${steps}`).to.equal('kept');
            }
            expect(await codeOf(openBarrier(store, { seal: other }).then((one) => opened(one, shares)))).to.equal(
              'seal_mismatch',
            );
            // The migration is repeated from where it was.
            const again = await openBarrier(store, { seal: both });
            await opened(again, shares);
            if (kind === from) await give(again, shares);
            expect(again.sealStatus).to.include({ ...idOfKind(to), migration: false });
            expect(steps).to.be.below(100);
          }
        expect([...types]).to.have.members([from, to]);
      });
    });
  }

  const { shamir, transit } = seals();

  it('opens a sealed Shamir node by the shares of the migration', async () => {
    const { store, shares } = await initialized(shamir);
    const barrier = await openBarrier(store, { seal: { ...transit, migrateFrom: shamir } });
    await give(barrier, shares);
    expect(barrier.sealStatus).to.include({ type: 'transit', sealed: false, migration: false });
  });

  it('waits on a node that cannot write, and is done by a later maintain()', async () => {
    const { store, shares } = await initialized(shamir);
    const faulty = faultyStore(store);
    const barrier = await openBarrier(faulty, { seal: { ...transit, migrateFrom: shamir } });
    faulty.beforeCommit = () => Promise.reject(new StoreError('not_leader', 'a follower'));
    await give(barrier, shares);
    expect(barrier.sealStatus).to.include({ type: 'shamir', sealed: false, migration: true });
    delete faulty.beforeCommit;
    expect(await barrier.maintain()).to.include({ migrated: true });
    expect(await barrier.maintain()).to.include({ migrated: false });
    expect(await typeIn(store)).to.equal('transit');
  });

  it('does not happen without the agreement of enough holders', async () => {
    const { store, shares } = await initialized(shamir);
    const barrier = await openBarrier(store, { seal: { ...transit, migrateFrom: shamir } });
    await unsealWith(barrier, shares.slice(0, 2));
    await barrier.migrate(shares[0] ?? none);
    await barrier.migrate(shares[0] ?? none);
    expect(await codeOf(barrier.migrate(randomBytes(33)))).to.equal('invalid_share');
    expect(barrier.sealStatus).to.include({ progress: 1 });
    await barrier.maintain();
    expect(await typeIn(store)).to.equal('shamir');
  });

  it('forgets shares and an agreement after ten minutes, and when the node is sealed', async () => {
    for (const forget of ['time', 'seal'] as const) {
      let now = 1_000_000;
      const { store, shares } = await initialized(shamir);
      const faulty = faultyStore(store);
      const barrier = await openBarrier(faulty, { seal: { ...transit, migrateFrom: shamir }, clock: clockOf(() => now) });
      faulty.beforeCommit = () => Promise.reject(new StoreError('not_leader', 'a follower'));
      await give(barrier, shares);
      delete faulty.beforeCommit;
      if (forget === 'time') now += 600_000;
      else {
        barrier.seal();
        await unsealWith(barrier, shares.slice(0, 2));
      }
      barrier.expireMigration();
      expect(await barrier.maintain()).to.include({ migrated: false });
      expect(await typeIn(store)).to.equal('shamir');
    }
  });

  it('ends if the seal was rekeyed meanwhile: the shares must be given again', async () => {
    const { store, shares, barrier: other } = await initialized(shamir);
    const faulty = faultyStore(store);
    const barrier = await openBarrier(faulty, { seal: { ...transit, migrateFrom: shamir } });
    faulty.beforeCommit = () => Promise.reject(new StoreError('not_leader', 'a follower'));
    await give(barrier, shares);
    delete faulty.beforeCommit;
    const { nonce } = await other.rekey.start({ shares: 1, threshold: 1, requireVerification: false });
    for (const share of shares.slice(0, 2)) await other.rekey.update({ nonce, share });
    expect(await codeOf(barrier.maintain())).to.equal('conflict');
    expect(await barrier.maintain()).to.include({ migrated: false });
    expect(await typeIn(store)).to.equal('shamir');
  });

  it('changes nothing while the new provider is away, and is tried again by maintain()', async () => {
    const provider = new FakeProvider();
    provider.failure = new ProviderError('unreachable', 'away');
    const { store, shares } = await initialized(shamir);
    const barrier = await openBarrier(store, { seal: { type: 'transit', provider, migrateFrom: shamir } });
    expect(await codeOf(give(barrier, shares))).to.equal('seal_unavailable');
    expect(barrier.sealStatus).to.include({ type: 'shamir', sealed: false, migration: true });
    expect(await codeOf(barrier.maintain())).to.equal('seal_unavailable');
    provider.failure = undefined;
    expect(await barrier.maintain()).to.include({ migrated: true });
  });

  it('does not delay a due rotation of the key while a provider refuses the migration or a rewrap', async () => {
    for (const rewrap of [false, true]) {
      let nowMs = 1_000_000;
      const intervalMs = 24 * 60 * 60 * 1000;
      const provider = new FakeProvider();
      const from = seals().static;
      const next: OneSeal = { type: 'transit', provider };
      const { store, shares } = await initialized(rewrap ? next : from);
      const seal: SealConfig = rewrap ? next : { ...next, migrateFrom: from };
      const barrier = await openBarrier(store, {
        seal,
        clock: clockOf(() => nowMs),
        rotation: { ...defaultRotation, intervalMs },
      });
      await barrier.autoUnseal();
      nowMs += intervalMs;
      provider.rotate();
      if (rewrap) await provider.wrap(randomBytes(32)); // the new version is known
      provider.failure = new ProviderError('permission', 'no');
      if (!rewrap) expect(await codeOf(give(barrier, shares))).to.equal('seal_unavailable');
      expect(await codeOf(barrier.maintain())).to.equal('seal_unavailable');
      expect(barrier.rotation.keyStatus().term).to.equal(2);
    }
  });

  it('keeps the agreement of enough holders when a caller without a token discards shares of a sealed node', async () => {
    const { static: old, transit: next } = seals();
    const { store, shares } = await initialized(old);
    const barrier = await openBarrier(store, { seal: { ...next, migrateFrom: old } });
    await give(barrier, shares);
    expect(barrier.resetUnseal()).to.include({ sealed: true, migration: true });
    await barrier.autoUnseal();
    expect(await barrier.maintain()).to.include({ migrated: true });
  });

  it('is refused where there is nothing to migrate', async () => {
    const { store, shares, barrier } = await initialized(shamir);
    expect(await messageOf(barrier.migrate(shares[0] ?? none))).to.equal(
      'there is no seal to migrate: the data is sealed with type shamir, as seal.type says',
    );
    const other = await openBarrier(store, { seal: transit });
    expect(await messageOf(other.migrate(shares[0] ?? none))).to.match(
      /^the data was sealed with type shamir, the configuration says transit: correct seal.type, or set migrate_seal_from/,
    );
  });

  it('allows a rekey before it, whose shares belong to the present seal', async () => {
    const { store, shares } = await initialized(shamir);
    const barrier = await openBarrier(store, { seal: { ...transit, migrateFrom: shamir } });
    await unsealWith(barrier, shares.slice(0, 2));
    const { nonce } = await barrier.rekey.start({ shares: 1, threshold: 1, requireVerification: false });
    for (const share of shares.slice(0, 2)) await barrier.rekey.update({ nonce, share });
    expect(await typeIn(store)).to.equal('shamir');
  });

  it('lets a node join in the meantime and afterwards, and names a seal that is not configured', async () => {
    const { transit: old, other } = seals();
    const { store, shares } = await initialized(old);
    const both: SealConfig = { ...other, migrateFrom: old };
    const barrier = await openBarrier(store, { seal: both });
    await opened(barrier, shares);
    const joins = async (seal: SealConfig): Promise<string> => {
      const exchanged = randomBytes(32);
      const { secret, ...offer } = await barrier.wrapForJoin(exchanged);
      const received = await openJoinSecret(seal, { ...offer, exchanged });
      return received.equals(secret) ? 'joined' : 'another secret';
    };
    expect(await joins(both)).to.equal('joined');
    expect(await joins(old)).to.equal('joined');
    expect(await messageOf(joins(other))).to.equal(
      'the data was sealed with type transit, the configuration says transit named other: correct seal.name, ' +
        'or set migrate_seal_from to the seal of type transit to move from it',
    );
    await give(barrier, shares);
    expect(await joins(both)).to.equal('joined');
    expect(await joins(other)).to.equal('joined');
    expect(await messageOf(joins(old))).to.match(
      /sealed with type transit named other, the configuration says transit: correct seal.name/,
    );
    // Another name in the record does not open: the name is bound to the root key.
    const stored = JSON.parse(Buffer.from((await store.get('core/seal'))?.value ?? none).toString());
    await store.commit({
      conditions: [],
      writes: [{ path: 'core/seal', value: Buffer.from(JSON.stringify({ ...stored, name: 'renamed' })) }],
    });
    const renamed = await openBarrier(store, { seal: { ...other, name: 'renamed' } as SealConfig });
    expect(await codeOf(renamed.autoUnseal())).to.equal('barrier_corrupt');
  });

  it('keeps the new seal through a rekey, and a rekey before it the old one', async () => {
    const { transit: old, other } = seals();
    const { store, shares } = await initialized(old);
    const barrier = await openBarrier(store, { seal: { ...other, migrateFrom: old } });
    await opened(barrier, shares);
    const rekey = async (given: readonly Buffer[]): Promise<readonly Buffer[]> => {
      const { nonce } = await barrier.rekey.start({ shares: 3, threshold: 2, requireVerification: false });
      await barrier.rekey.update({ nonce, share: given[0] ?? none });
      const step = await barrier.rekey.update({ nonce, share: given[1] ?? none });
      return step.complete ? step.shares : [];
    };
    const next = await rekey(shares);
    expect([await kindIn(store), barrier.sealStatus.migration]).to.deep.equal(['transit', true]);
    await give(barrier, next);
    expect(await kindIn(store)).to.equal('other');
    await rekey(next);
    expect([await kindIn(store), barrier.sealStatus.migration]).to.deep.equal(['other', false]);
    const again = await openBarrier(store, { seal: other });
    await again.autoUnseal();
    expect(await read(again, 'a')).to.equal('kept');
  });
});

/**
 * Returns a store of a process that ends at a step: every call after `steps` calls fails. The call at which it ends has been carried out
 * if `committed`.
 */
function crashingStore(store: Store, steps: number, committed: boolean): Store & { crashed: () => boolean } {
  let left = steps;
  const step = async <T>(call: () => Promise<T>): Promise<T> => {
    left -= 1;
    if (left === -1 && committed) await call();
    if (left < 0) throw new Error('the process has ended');
    return call();
  };
  return {
    get: (path) => step(() => store.get(path)),
    range: (query) => step(() => store.range(query)),
    paths: (query) => step(() => store.paths(query)),
    commit: (transaction) => step(() => store.commit(transaction)),
    watch: () => () => undefined,
    crashed: () => left < 0,
  };
}
