import { createHash, randomBytes } from 'node:crypto';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { Barrier, OneSeal } from '../../src/index.ts';
import { codeOf, openBarrier, put, read, unsealWith } from '../fixtures.ts';
import { FakeProvider } from './fake-provider.ts';

const seals: Readonly<Record<'static' | 'transit', () => OneSeal>> = {
  static: () => ({ type: 'static', current: { id: 'k', key: randomBytes(32) } }),
  transit: () => ({ type: 'transit', provider: new FakeProvider() }),
};
const pad = randomBytes(4);

async function initialized(seal: OneSeal, store = memoryStore()) {
  const barrier = await openBarrier(store, { seal });
  const { shares } = await barrier.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []);
  await put(barrier, 'a', 'kept');
  return { store, barrier, share: shares[0] ?? Buffer.alloc(0) };
}

const recordIn = async (store: Store): Promise<Buffer> => Buffer.from((await store.get('core/seal'))?.value ?? []);

/** Writes `core/seal` as somebody who reaches the store, but not the barrier. */
const replaced = (store: Store, value: Uint8Array) => store.commit({ conditions: [], writes: [{ path: 'core/seal', value }] });

/** Names another share in the record, and returns that share. */
async function forged(store: Store, changed: object = {}): Promise<Buffer> {
  const share = randomBytes(32);
  const shareHashes = [createHash('sha256').update(share).digest('hex')];
  const record = JSON.parse((await recordIn(store)).toString());
  await replaced(store, Buffer.from(JSON.stringify({ ...record, shareHashes, ...changed })));
  return share;
}

/** Generates a token with one share; returns the code of the refusal. */
async function generated(barrier: Barrier, share: Buffer): Promise<string> {
  const { nonce } = await barrier.rootGeneration.start(pad);
  let made = 0;
  const make = async () => {
    made += 1;
    return 'wxyz';
  };
  const code = await codeOf(barrier.rootGeneration.update({ nonce, share }, make));
  expect(made).to.equal(0);
  return code;
}

describe('a seal record whose recovery shares somebody else wrote', () => {
  for (const [type, newSeal] of Object.entries(seals))
    describe(`of a seal of type ${type}`, () => {
      it('authorizes no token, and the record of this cluster does again', async () => {
        const { store, barrier, share } = await initialized(newSeal());
        const own = await recordIn(store);
        expect(await generated(barrier, await forged(store))).to.equal('barrier_corrupt');
        await replaced(store, own);
        barrier.dropAttempts();
        const { nonce } = await barrier.rootGeneration.start(pad);
        expect(await barrier.rootGeneration.update({ nonce, share }, async () => 'wxyz')).to.include({ complete: true });
      });

      it('authorizes no token if it is the record from before a rekey', async () => {
        const { store, barrier, share } = await initialized(newSeal());
        const before = await recordIn(store);
        const { nonce } = await barrier.rekey.start({ shares: 1, threshold: 1, requireVerification: false });
        await barrier.rekey.update({ nonce, share });
        await replaced(store, before);
        expect(await generated(barrier, share)).to.equal('barrier_corrupt');
      });

      it('authorizes no rekey', async () => {
        const { store, barrier } = await initialized(newSeal());
        const share = await forged(store);
        const { nonce } = await barrier.rekey.start({ shares: 1, threshold: 1, requireVerification: false });
        expect(await codeOf(barrier.rekey.update({ nonce, share }))).to.equal('barrier_corrupt');
      });

      it('authorizes no migration to another seal', async () => {
        const old = newSeal();
        const { store } = await initialized(old);
        const barrier = await openBarrier(store, { seal: { type: 'shamir', migrateFrom: old } });
        await barrier.autoUnseal();
        expect(await codeOf(barrier.migrate(await forged(store)))).to.equal('barrier_corrupt');
        expect(JSON.parse((await recordIn(store)).toString())).to.include({ type });
      });

      it('is not given to other clusters', async () => {
        const { store, barrier } = await initialized(newSeal());
        await forged(store);
        expect(await codeOf(barrier.transfer.publishRecoveryShares())).to.equal('barrier_corrupt');
      });

      it('is not wrapped again under the present key of the seal', async () => {
        const seal = newSeal();
        const { store, barrier } = await initialized(seal);
        if ('provider' in seal && seal.provider instanceof FakeProvider) {
          seal.provider.rotate();
          await seal.provider.wrap(randomBytes(32));
        }
        const share = await forged(store, seal.type === 'static' ? { keyId: 'another' } : {});
        const value = await recordIn(store);
        await barrier.maintain().catch(() => undefined);
        expect((await recordIn(store)).toString()).to.equal(value.toString());
        expect(await generated(barrier, share)).to.equal(seal.type === 'static' ? 'seal_mismatch' : 'barrier_corrupt');
      });
    });

  for (const type of ['static', 'transit'])
    it(`authorizes no token of a cluster with a Shamir seal if its type is ${type}`, async () => {
      const store = memoryStore();
      const barrier = await openBarrier(store, { seal: { type: 'shamir' } });
      const { shares } = await barrier.initialize({ secretShares: 1, secretThreshold: 1 }, []);
      await unsealWith(barrier, shares);
      const share = await forged(store, { type, keyId: 'k', ...(type === 'transit' && { wrappedKey: 'w' }) });
      expect(await generated(barrier, share)).to.equal('seal_mismatch');
    });

  it('of a Shamir seal authorizes no migration, even if it wraps a root key', async () => {
    const store = memoryStore();
    const old: OneSeal = { type: 'shamir' };
    const next = seals.static();
    const first = await openBarrier(store, { seal: old });
    const { shares } = await first.initialize({ secretShares: 1, secretThreshold: 1 }, []);
    const barrier = await openBarrier(store, { seal: { ...next, migrateFrom: old } });
    await unsealWith(barrier, shares);
    const other = memoryStore();
    const theirs = await (await openBarrier(other, { seal: old })).initialize({ secretShares: 1, secretThreshold: 1 }, []);
    await replaced(store, await recordIn(other));
    expect(await codeOf(barrier.migrate(theirs.shares[0] ?? Buffer.alloc(0)))).to.equal('barrier_corrupt');
    await barrier.maintain().catch(() => undefined);
    expect(JSON.parse((await recordIn(store)).toString())).to.include({ type: 'shamir' });
    expect(await read(barrier, 'a')).to.equal(undefined);
  });
});
