import { randomBytes } from 'node:crypto';
import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { Barrier, NewShares, RekeyRequest, RekeyStep } from '../../src/index.ts';
import { faultyStore } from '../faulty-store.ts';
import { codeOf, everything, openBarrier, put, read, unsealedBarrier, unsealWith } from '../fixtures.ts';

const fiveOfThree: RekeyRequest = { shares: 5, threshold: 3, requireVerification: false };

/** Starts a rekey and submits `shares`; returns the last step. */
async function rekeyWith(barrier: Barrier, shares: readonly Buffer[], request = fiveOfThree): Promise<RekeyStep | undefined> {
  const { nonce } = await barrier.rekey.start(request);
  let step: RekeyStep | undefined;
  for (const share of shares) step = await barrier.rekey.update({ nonce, share });
  return step;
}

async function rekeyed(barrier: Barrier, shares: readonly Buffer[], request = fiveOfThree): Promise<NewShares> {
  const step = await rekeyWith(barrier, shares, request);
  if (!step?.complete) throw new Error('the rekey is not complete');
  return step;
}

async function opensWith(store: Store, shares: readonly Buffer[]): Promise<boolean> {
  const barrier = await openBarrier(store);
  try {
    await unsealWith(barrier, shares);
    return !barrier.state.sealed;
  } catch {
    return false;
  } finally {
    barrier.close();
  }
}

describe('a rekey', () => {
  it('replaces the shares: the new ones unseal, the old ones do not, and the data is the same', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    await put(barrier, 'a', 'kept');
    const next = await rekeyed(barrier, shares.slice(0, 2));
    expect(next).to.deep.include({ complete: true, inForce: true });
    expect(next.shares).to.have.lengthOf(5);
    expect(barrier.sealStatus).to.deep.include({ sealed: false, t: 3, n: 5 });
    expect(await read(barrier, 'a')).to.equal('kept');
    await put(barrier, 'b', 'after');
    barrier.close();
    const again = await openBarrier(store);
    expect(await codeOf(again.unseal(shares[0] ?? Buffer.alloc(0)))).to.equal('invalid_share');
    await unsealWith(again, next.shares.slice(2));
    expect([await read(again, 'a'), await read(again, 'b')]).to.deep.equal(['kept', 'after']);
  });

  it('has updated the status when it resolves, however slow the store is', async () => {
    const store = faultyStore(memoryStore());
    const { barrier, shares } = await unsealedBarrier({ store });
    store.beforeGet = () => new Promise(setImmediate);
    await rekeyed(barrier, shares.slice(0, 2));
    expect(barrier.sealStatus).to.deep.include({ t: 3, n: 5 });
  });

  it('replaces the root key too: no key opens both the old and the new keyring', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    const before = await everything(store);
    const next = await rekeyed(barrier, shares.slice(0, 2));
    const value = before.get('core/keyring') ?? null;
    await store.commit({ conditions: [], writes: [{ path: 'core/keyring', value }] });
    const again = await openBarrier(store);
    expect(await codeOf(unsealWith(again, next.shares.slice(0, 3)))).to.equal('barrier_corrupt');
  });

  it('can be repeated, and rotation still works', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    await barrier.rotation.rotate();
    const second = await rekeyed(barrier, shares.slice(0, 2));
    await barrier.rotation.rotate();
    const third = await rekeyed(barrier, second.shares.slice(0, 3));
    await barrier.rotation.rotate();
    expect(barrier.rotation.keyStatus().term).to.equal(4);
    expect(await opensWith(store, third.shares.slice(0, 3))).to.equal(true);
  });

  it('is followed by a node that is already unsealed', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    const next = await rekeyed(barrier, shares.slice(0, 2));
    await barrier.rotation.rotate();
    await put(barrier, 'a', 'after');
    expect(await read(other, 'a')).to.equal('after');
    await other.rotation.rotate();
    await rekeyed(other, next.shares.slice(0, 3));
    await put(other, 'b', 'back');
    expect(await read(barrier, 'b')).to.equal('back');
  });

  it('and a rotation after it are followed by a node that missed both, such as one that was cut off', async () => {
    const store = memoryStore();
    const { barrier, shares } = await unsealedBarrier({ store });
    const cutOff = faultyStore(store);
    const other = await openBarrier(cutOff);
    await unsealWith(other, shares.slice(0, 2));
    cutOff.beforeGet = () => Promise.reject(new StoreError('busy', 'busy'));
    await rekeyed(barrier, shares.slice(0, 2));
    await barrier.rotation.rotate();
    await put(barrier, 'a', 'after');
    delete cutOff.beforeGet;
    expect(await read(other, 'a')).to.equal('after');
  });

  it('counts each current share once, and refuses a wrong one and keeps the progress', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = shares;
    const { nonce } = await barrier.rekey.start(fiveOfThree);
    expect(barrier.rekey.status).to.deep.equal({
      started: true,
      nonce,
      t: 3,
      n: 5,
      progress: 0,
      required: 2,
      verificationRequired: false,
      verifying: false,
    });
    for (const share of [first, first]) expect(await barrier.rekey.update({ nonce, share })).to.deep.include({ complete: false });
    expect(await codeOf(barrier.rekey.update({ nonce, share: randomBytes(33) }))).to.equal('invalid_share');
    expect(barrier.rekey.status).to.include({ progress: 1 });
    expect(await barrier.rekey.update({ nonce, share: second })).to.deep.include({ complete: true });
    expect(barrier.rekey.status).to.include({ started: false, nonce: '' });
  });

  it('runs one at a time, and requires its nonce', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const share = shares[0] ?? Buffer.alloc(0);
    expect(await codeOf(barrier.rekey.update({ nonce: '', share }))).to.equal('rekey_not_started');
    const { nonce } = await barrier.rekey.start(fiveOfThree);
    expect(await codeOf(barrier.rekey.start(fiveOfThree))).to.equal('rekey_in_progress');
    expect(await codeOf(barrier.rekey.update({ nonce: 'other', share }))).to.equal('rekey_nonce');
    expect(await codeOf(barrier.rekey.verify({ nonce, share }))).to.equal('rekey_not_started');
    expect(await codeOf(barrier.rekey.cancel({ nonce: 'other' }))).to.equal('rekey_nonce');
    expect(barrier.rekey.status).to.include({ started: true, nonce, progress: 0 });
  });

  for (const by of ['nonce', 'privileged'] as const)
    it(`can be canceled by ${by}, and then changes nothing`, async () => {
      const { barrier, store, shares } = await unsealedBarrier();
      const before = await everything(store);
      const { nonce } = await barrier.rekey.start(fiveOfThree);
      await barrier.rekey.update({ nonce, share: shares[0] ?? Buffer.alloc(0) });
      await barrier.rekey.cancel(by === 'nonce' ? { nonce } : 'privileged');
      expect(barrier.rekey.status.started).to.equal(false);
      expect(await everything(store)).to.deep.equal(before);
    });

  it('refuses impossible counts', async () => {
    const { barrier } = await unsealedBarrier();
    expect(await codeOf(barrier.rekey.start({ shares: 2, threshold: 3, requireVerification: false }))).to.equal(
      'invalid_seal_config',
    );
    expect(barrier.rekey.status.started).to.equal(false);
  });

  it('ends when the barrier is sealed', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const { nonce } = await barrier.rekey.start(fiveOfThree);
    barrier.seal();
    await unsealWith(barrier, shares.slice(0, 2));
    expect(await codeOf(barrier.rekey.update({ nonce, share: shares[0] ?? Buffer.alloc(0) }))).to.equal('rekey_not_started');
  });

  it('changes nothing when the store refuses it, and its last share may be submitted again', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier, shares } = await unsealedBarrier({ store: faulty });
    const before = await everything(store);
    faulty.beforeCommit = () => Promise.reject(new StoreError('disk_low', 'the disk is full'));
    expect(await codeOf(rekeyWith(barrier, shares.slice(0, 2)))).to.equal('disk_low');
    expect(await everything(store)).to.deep.equal(before);
    delete faulty.beforeCommit;
    const { nonce } = barrier.rekey.status;
    const step = await barrier.rekey.update({ nonce, share: shares[1] ?? Buffer.alloc(0) });
    expect(step).to.deep.include({ complete: true, inForce: true });
    expect(step.complete && (await opensWith(store, step.shares.slice(0, 3)))).to.equal(true);
  });

  it('returns the new shares even when the outcome is unknown, and says so', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier, shares } = await unsealedBarrier({ store: faulty });
    faulty.beforeCommit = () => Promise.reject(new StoreError('outcome_unknown', 'no answer'));
    const step = await rekeyed(barrier, shares.slice(0, 2));
    expect(step).to.deep.include({ inForce: 'unknown' });
    expect(step.shares).to.have.lengthOf(5);
    expect(barrier.rekey.status.started).to.equal(false);
  });

  it('is refused after another node has rekeyed', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    const { nonce } = await barrier.rekey.start(fiveOfThree);
    const next = await rekeyed(other, shares.slice(0, 2));
    const [first = Buffer.alloc(0)] = shares;
    expect(await codeOf(barrier.rekey.update({ nonce, share: first }))).to.equal('conflict');
    expect(barrier.rekey.status.started).to.equal(false);
    expect(await opensWith(store, next.shares.slice(0, 3))).to.equal(true);
  });

  it('is refused when another node rekeys just before its commit', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier, shares } = await unsealedBarrier({ store: faulty });
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    let next: readonly Buffer[] = [];
    faulty.beforeCommit = async () => {
      next = (await rekeyed(other, shares.slice(0, 2))).shares;
    };
    expect(await codeOf(rekeyWith(barrier, shares.slice(0, 2)))).to.equal('conflict');
    expect(barrier.rekey.status.started).to.equal(false);
    expect(await opensWith(store, next.slice(0, 3))).to.equal(true);
  });

  it('retries from a fresh read when the keyring was rotated meanwhile, and loses no term', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier, shares } = await unsealedBarrier({ store: faulty });
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    faulty.beforeCommit = async () => {
      delete faulty.beforeCommit;
      await other.rotation.rotate();
      await put(other, 'a', 'under term 2');
    };
    const next = await rekeyed(barrier, shares.slice(0, 2));
    const again = await openBarrier(store);
    await unsealWith(again, next.shares.slice(0, 3));
    expect(await read(again, 'a')).to.equal('under term 2');
  });

  it('with a static seal collects recovery shares and returns new ones', async () => {
    const store = memoryStore();
    const seal = { type: 'static', current: { id: 'k', key: randomBytes(32) } } as const;
    const barrier = await openBarrier(store, { seal });
    const { shares } = await barrier.initialize({ recoveryShares: 3, recoveryThreshold: 2 }, []);
    await put(barrier, 'a', 'kept');
    const next = await rekeyed(barrier, shares.slice(0, 2));
    expect(barrier.sealStatus).to.deep.include({ t: 3, n: 5 });
    barrier.close();
    const again = await openBarrier(store, { seal });
    await again.autoUnseal();
    expect(await read(again, 'a')).to.equal('kept');
    const { nonce } = await again.rekey.start(fiveOfThree);
    expect(await codeOf(again.rekey.update({ nonce, share: shares[0] ?? Buffer.alloc(0) }))).to.equal('invalid_share');
    expect(await again.rekey.update({ nonce, share: next.shares[0] ?? Buffer.alloc(0) })).to.deep.include({ complete: false });
  });
});

describe('a rekey during which another node rewraps the root key by a new static key', () => {
  it('is refused, since it would restore the old key', async () => {
    const store = memoryStore();
    const old = { id: 'old', key: randomBytes(32) };
    const faulty = faultyStore(store);
    const barrier = await openBarrier(faulty, { seal: { type: 'static', current: old } });
    const { shares } = await barrier.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []);
    const other = await openBarrier(store, {
      seal: { type: 'static', current: { id: 'new', key: randomBytes(32) }, previous: old },
    });
    faulty.beforeCommit = () => other.autoUnseal();
    expect(await codeOf(rekeyWith(barrier, shares))).to.equal('conflict');
    expect(other.state.sealed).to.equal(false);
  });
});

describe('a rekey with verification', () => {
  const request = { ...fiveOfThree, requireVerification: true };

  it('puts the new shares in force only after enough of them were submitted', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    const next = await rekeyed(barrier, shares.slice(0, 2), request);
    const nonce = next.verificationNonce ?? '';
    expect(next.inForce).to.equal(false);
    expect(barrier.rekey.status).to.include({ started: true, nonce, verifying: true, progress: 0, required: 3 });
    expect(await opensWith(store, shares.slice(0, 2))).to.equal(true);
    const [first = Buffer.alloc(0), second = Buffer.alloc(0), third = Buffer.alloc(0)] = next.shares;
    for (const share of [first, first, second])
      expect(await barrier.rekey.verify({ nonce, share })).to.have.property('complete', false);
    expect(await codeOf(barrier.rekey.verify({ nonce, share: shares[0] ?? first }))).to.equal('invalid_share');
    expect(barrier.rekey.status.progress).to.equal(2);
    expect(await barrier.rekey.verify({ nonce, share: third })).to.have.property('complete', true);
    expect(barrier.rekey.status.started).to.equal(false);
    expect(await opensWith(store, shares.slice(0, 2))).to.equal(false);
    expect(await opensWith(store, next.shares.slice(2))).to.equal(true);
  });

  it('requires the nonce of its second step, and accepts no more current shares', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const { nonce } = await barrier.rekey.start(request);
    for (const share of shares.slice(0, 2)) await barrier.rekey.update({ nonce, share });
    const share = shares[2] ?? Buffer.alloc(0);
    expect(await codeOf(barrier.rekey.update({ nonce, share }))).to.equal('rekey_in_progress');
    expect(await codeOf(barrier.rekey.verify({ nonce, share }))).to.equal('rekey_nonce');
  });

  for (const [what, end] of [
    ['canceled', (barrier: Barrier) => barrier.rekey.cancel('privileged')],
    ['sealed', async (barrier: Barrier) => barrier.seal()],
    ['dropped', async (barrier: Barrier) => barrier.dropAttempts()],
  ] as const)
    it(`leaves the old shares in force when it is ${what}`, async () => {
      const { barrier, store, shares } = await unsealedBarrier();
      await rekeyed(barrier, shares.slice(0, 2), request);
      await end(barrier);
      expect(barrier.rekey.status.started).to.equal(false);
      expect(await opensWith(store, shares.slice(0, 2))).to.equal(true);
    });

  it('puts the returned shares in force even when the attempt is dropped and the keyring changes before its commit', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier, shares } = await unsealedBarrier({ store: faulty });
    const next = await rekeyed(barrier, shares.slice(0, 2), { shares: 1, threshold: 1, requireVerification: true });
    const other = await openBarrier(store);
    await unsealWith(other, shares.slice(0, 2));
    faulty.beforeCommit = async () => {
      faulty.beforeCommit = async () => undefined;
      barrier.dropAttempts();
      await other.rotation.rotate();
    };
    const given = { nonce: next.verificationNonce ?? '', share: next.shares[0] ?? Buffer.alloc(0) };
    expect(await barrier.rekey.verify(given)).to.have.property('complete', true);
    expect(await opensWith(store, next.shares)).to.equal(true);
  });

  it('reports that the outcome of its commit is unknown', async () => {
    const store = memoryStore();
    const faulty = faultyStore(store);
    const { barrier, shares } = await unsealedBarrier({ store: faulty });
    const next = await rekeyed(barrier, shares.slice(0, 2), { shares: 1, threshold: 1, requireVerification: true });
    faulty.beforeCommit = () => Promise.reject(new StoreError('outcome_unknown', 'no answer'));
    const given = { nonce: next.verificationNonce ?? '', share: next.shares[0] ?? Buffer.alloc(0) };
    expect(await codeOf(barrier.rekey.verify(given))).to.equal('outcome_unknown');
    expect(barrier.rekey.status.started).to.equal(false);
  });
});

describe('a keyring that appears in the store and does not open', () => {
  it('seals the node, with a reason', async () => {
    const { barrier, store } = await unsealedBarrier();
    const notified = new Promise((resolve) => barrier.onStateChange(resolve));
    const value = Buffer.concat([Buffer.of(1), randomBytes(100)]);
    await store.commit({ conditions: [], writes: [{ path: 'core/keyring', value }] });
    expect(await notified).to.deep.equal({
      initialized: true,
      sealed: true,
      reason: "this node's keys do not open the keyring in the store",
    });
    expect(await codeOf(barrier.store.get('a'))).to.equal('sealed');
  });
});
