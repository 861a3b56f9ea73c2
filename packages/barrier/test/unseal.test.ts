import { randomBytes } from 'node:crypto';
import { memoryStore, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../process/test/test-clock.ts';
import { Barrier, type BarrierState } from '../src/index.ts';
import { faultyStore } from './faulty-store.ts';
import { codeOf, messageOf, openBarrier, put, read, threeOfTwo, unsealedBarrier, unsealWith } from './fixtures.ts';

const none = Buffer.alloc(0);

async function sealedBarrier() {
  const store = faultyStore(memoryStore());
  const barrier = await openBarrier(store);
  const { shares } = await barrier.initialize(threeOfTwo, []);
  const [first = none, second = none, third = none] = shares;
  return { barrier, store, first, second, third };
}

describe('unseal', () => {
  it('counts different shares and unseals at the threshold', async () => {
    const { barrier, first, third } = await sealedBarrier();
    const status = await barrier.unseal(first);
    expect(status).to.deep.include({ sealed: true, progress: 1, t: 2, n: 3 });
    expect(status.nonce).to.match(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(await barrier.unseal(third)).to.deep.include({ sealed: false, progress: 0, nonce: '' });
  });

  it('counts the same share once', async () => {
    const { barrier, first } = await sealedBarrier();
    const { nonce } = await barrier.unseal(first);
    expect(await barrier.unseal(Buffer.from(first))).to.deep.include({ sealed: true, progress: 1, nonce });
  });

  it('counts the same share once when it is submitted twice at the same time', async () => {
    const { barrier, first } = await sealedBarrier();
    await Promise.all([barrier.unseal(first), barrier.unseal(first)]);
    expect(barrier.sealStatus).to.deep.include({ sealed: true, progress: 1 });
  });

  it('refuses a wrong share at once and keeps the progress', async () => {
    const { barrier, first, second } = await sealedBarrier();
    expect(await codeOf(barrier.unseal(randomBytes(33)))).to.equal('invalid_share');
    expect(barrier.sealStatus).to.deep.include({ progress: 0, nonce: '' });
    const { nonce } = await barrier.unseal(first);
    for (const wrong of [randomBytes(33), none, randomBytes(1)])
      expect(await messageOf(barrier.unseal(wrong))).to.match(/^invalid key/);
    expect(barrier.sealStatus).to.deep.include({ progress: 1, nonce });
    expect(await barrier.unseal(second)).to.deep.include({ sealed: false });
  });

  it('ignores any share on an unsealed barrier', async () => {
    const { barrier, shares } = await unsealedBarrier();
    for (const share of [shares[0] ?? none, randomBytes(33)])
      expect(await barrier.unseal(share)).to.deep.include({ sealed: false, progress: 0, nonce: '' });
  });

  it('is refused before initialization', async () => {
    expect(await codeOf((await openBarrier(memoryStore())).unseal(randomBytes(32)))).to.equal('not_initialized');
  });

  it('starts over after a reset, with another nonce', async () => {
    const { barrier, first, second } = await sealedBarrier();
    const { nonce } = await barrier.unseal(first);
    expect(barrier.resetUnseal()).to.deep.include({ progress: 0, nonce: '' });
    expect(await barrier.unseal(second)).to.deep.include({ sealed: true, progress: 1 });
    expect(barrier.sealStatus.nonce).not.to.equal(nonce);
  });

  it('cannot be reset once the barrier is unsealed', async () => {
    const { barrier } = await unsealedBarrier();
    expect(() => barrier.resetUnseal())
      .to.throw('unsealed')
      .with.property('code', 'unsealed');
  });

  it('gives access to the same data after a restart', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    await put(barrier, 'a/b', 'kept');
    barrier.close();
    const again = await openBarrier(store);
    expect(again.sealStatus).to.deep.include({ initialized: true, sealed: true, progress: 0 });
    await unsealWith(again, shares.slice(1));
    expect(await read(again, 'a/b')).to.equal('kept');
  });

  it('has no effect when the barrier is sealed meanwhile', async () => {
    const { barrier, store, first, second } = await sealedBarrier();
    await barrier.unseal(first);
    store.beforeGet = async (path) => {
      if (path === 'core/keyring') barrier.seal();
    };
    expect(await codeOf(barrier.unseal(second))).to.equal('sealed');
    expect(barrier.sealStatus).to.deep.include({ sealed: true, progress: 0, nonce: '' });
  });

  it('loads a rotation that happened while the keyring was being read', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    const slow = faultyStore(store);
    const late = await openBarrier(slow);
    await late.unseal(shares[0] ?? none);
    const read: string[] = [];
    slow.beforeGet = async (path) => {
      read.push(path);
      if (read.length === 3) await barrier.rotation.rotate(); // after reading seal and keyring, before reading the seal again
    };
    await late.unseal(shares[1] ?? none);
    expect(read.slice(0, 3)).to.deep.equal(['core/seal', 'core/keyring', 'core/seal']);
    expect(late.rotation.keyStatus().term).to.equal(2);
  });

  it('reports a damaged seal record, and the progress starts over', async () => {
    const { barrier, store, first, second } = await sealedBarrier();
    const seal = JSON.parse(Buffer.from((await store.get('core/seal'))?.value ?? none).toString());
    await store.commit({
      conditions: [],
      writes: [
        {
          path: 'core/seal',
          value: Buffer.from(JSON.stringify({ ...seal, wrappedRootKey: randomBytes(60).toString('base64') })),
        },
      ],
    });
    await barrier.unseal(first);
    expect(await codeOf(barrier.unseal(second))).to.equal('barrier_corrupt');
    expect(barrier.sealStatus).to.deep.include({ sealed: true, progress: 0 });
  });

  it('refuses data that was sealed with another seal type', async () => {
    const { store, first } = await sealedBarrier();
    const other = await openBarrier(store, { seal: { type: 'static', current: { id: 'k', key: randomBytes(32) } } });
    expect(await codeOf(other.unseal(first))).to.equal('seal_mismatch');
    expect(await codeOf(other.autoUnseal())).to.equal('seal_mismatch');
  });
});

describe('seal', () => {
  it('refuses all operations that need a key afterwards', async () => {
    const { barrier } = await unsealedBarrier();
    await put(barrier, 'a', 'b');
    barrier.seal();
    expect(barrier.state).to.deep.equal({ initialized: true, sealed: true });
    for (const attempt of [
      () => barrier.store.get('a'),
      () => barrier.store.range({ prefix: '' }),
      () => barrier.store.commit({ conditions: [], writes: [] }),
      () => barrier.rotation.rotate(),
      () => barrier.rotation.config(),
      () => barrier.rekey.start({ shares: 1, threshold: 1, requireVerification: false }),
    ])
      expect(await codeOf(attempt()), String(attempt)).to.equal('sealed');
    expect(() => barrier.rotation.keyStatus()).to.throw('sealed');
  });

  it('drops the shares provided so far', async () => {
    const { barrier, first } = await sealedBarrier();
    await barrier.unseal(first);
    barrier.seal();
    expect(barrier.sealStatus).to.deep.include({ progress: 0, nonce: '' });
  });

  it('notifies listeners of sealing and unsealing, once each', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const notified: BarrierState[] = [];
    const stop = barrier.onStateChange((state) => notified.push(state));
    barrier.seal();
    barrier.seal();
    await unsealWith(barrier, shares.slice(0, 2));
    stop();
    barrier.seal();
    expect(notified).to.deep.equal([
      { initialized: true, sealed: true },
      { initialized: true, sealed: false },
    ]);
  });
});

describe('a static seal', () => {
  const old = { id: 'old', key: randomBytes(32) };
  const current = { id: 'new', key: randomBytes(32) };
  const keyIdIn = async (store: ReturnType<typeof memoryStore>): Promise<unknown> =>
    JSON.parse(Buffer.from((await store.get('core/seal'))?.value ?? none).toString()).keyId;

  async function initialized(store = memoryStore()) {
    const barrier = await openBarrier(store, { seal: { type: 'static', current: old } });
    const { shares } = await barrier.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []);
    await put(barrier, 'a', 'kept');
    barrier.close();
    return { store, shares };
  }

  it('unseals automatically after a restart', async () => {
    const { store } = await initialized();
    const barrier = await openBarrier(store, { seal: { type: 'static', current: old } });
    expect(barrier.state.sealed).to.equal(true);
    await barrier.autoUnseal();
    expect(await read(barrier, 'a')).to.equal('kept');
  });

  it('unseals with its previous key and is rewrapped under the current one, which it reports', async () => {
    const { store } = await initialized();
    const written: string[] = [];
    const onSealWritten = (change: string) => void written.push(change);
    const both = await openBarrier(store, { seal: { type: 'static', current, previous: old }, onSealWritten });
    await both.autoUnseal();
    expect(await keyIdIn(store)).to.equal('new');
    expect(written).to.deep.equal(['rewrapped']);
    both.close();
    const alone = await openBarrier(store, { seal: { type: 'static', current } });
    await alone.autoUnseal();
    expect(await read(alone, 'a')).to.equal('kept');
  });

  it('stays sealed when it is sealed during the unseal', async () => {
    const store = faultyStore((await initialized()).store);
    const barrier = await openBarrier(store, { seal: { type: 'static', current: old } });
    store.beforeGet = async () => barrier.seal();
    expect(await codeOf(barrier.autoUnseal())).to.equal('sealed');
    expect(barrier.state.sealed).to.equal(true);
  });

  it('stays sealed when a listener seals it again, such as one that cannot use the records', async () => {
    const barrier = await openBarrier((await initialized()).store, { seal: { type: 'static', current: old } });
    let unseals = 0;
    barrier.onStateChange(({ sealed }) => {
      if (sealed) return;
      unseals += 1;
      if (unseals < 5) barrier.seal();
    });
    await barrier.autoUnseal();
    expect([unseals, barrier.state.sealed]).to.deep.equal([1, true]);
  });

  it('unseals on a node that cannot write, and a later maintain() rewraps it', async () => {
    const { store } = await initialized();
    const faulty = faultyStore(store);
    const written: string[] = [];
    const onSealWritten = (change: string) => void written.push(change);
    const barrier = await openBarrier(faulty, { seal: { type: 'static', current, previous: old }, onSealWritten });
    faulty.beforeCommit = () => Promise.reject(new StoreError('not_leader', 'not the leader'));
    await barrier.autoUnseal();
    expect(barrier.state.sealed).to.equal(false);
    expect(await keyIdIn(store)).to.equal('old');
    expect(written).to.deep.equal([]);
    delete faulty.beforeCommit;
    expect(await barrier.maintain()).to.deep.equal({ migrated: false, rewrapped: true, rotated: false });
    expect(await barrier.maintain()).to.deep.equal({ migrated: false, rewrapped: false, rotated: false });
    expect(await keyIdIn(store)).to.equal('new');
    expect(written).to.deep.equal(['rewrapped']);
  });

  it("reports that no configured key has the record's id, or that the key with that id is wrong", async () => {
    const { store } = await initialized();
    const unknown = await openBarrier(store, { seal: { type: 'static', current } });
    expect(await messageOf(unknown.autoUnseal())).to.equal('no seal key with the id "old" is configured');
    const wrong = await openBarrier(store, { seal: { type: 'static', current: { id: 'old', key: current.key } } });
    expect(await messageOf(wrong.autoUnseal())).to.match(/^the seal key "old" does not open/);
    expect(wrong.state.sealed).to.equal(true);
  });

  it('is not unsealed by its recovery shares', async () => {
    const { store, shares } = await initialized();
    const barrier = await openBarrier(store, { seal: { type: 'static', current: old } });
    expect(await codeOf(barrier.unseal(shares[0] ?? none))).to.equal('seal_mismatch');
  });

  for (const [what, seal] of Object.entries({
    'a short key': { type: 'static', current: { id: 'k', key: randomBytes(31) } },
    'a long previous key': { type: 'static', current, previous: { id: 'k', key: randomBytes(33) } },
    'no id': { type: 'static', current: { id: '', key: randomBytes(32) } },
    'one id for both keys': { type: 'static', current, previous: { id: 'new', key: randomBytes(32) } },
  } as const))
    it(`is refused with ${what}`, async () => {
      const options = { store: memoryStore(), valuesWritten: () => 0, clock: clockOf(() => 0) };
      expect(await codeOf(Barrier.open({ ...options, seal }))).to.equal('invalid_seal_config');
    });
});
