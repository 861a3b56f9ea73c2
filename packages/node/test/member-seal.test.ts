// @live
import { BarrierError, type BarrierState } from '@transitd/barrier';
import { MemberEvents } from '@transitd/cluster';
import { expect } from 'chai';
import { pino } from 'pino';
import { until } from '../../process/test/until.ts';
import { MemberSeal } from '../src/member-seal.ts';
import type { LoadFailure } from '../src/service-loader.ts';
import { errorOf } from './opened-nodes.ts';

type Parts = ConstructorParameters<typeof MemberSeal>;

/** The seal of a node with a static key that fits. No share opens such a seal. */
function unsealedNode(type: 'static' | 'shamir' = 'static') {
  const state = { initialized: true, sealed: false };
  const unsealing: { fails: boolean; hangs: boolean; attempts: number; loadFailure?: LoadFailure } = {
    ...{ fails: false, hangs: false, attempts: 0 },
  };
  const fitness: boolean[] = [];
  let announce: (state: BarrierState) => void = () => undefined;
  const barrier = {
    state,
    get sealStatus() {
      return { type, progress: 0, sealed: state.sealed };
    },
    unseal: async () => {
      if (state.sealed) throw new BarrierError('seal_mismatch', 'shares do not unseal a seal of type static');
      return barrier.sealStatus;
    },
    autoUnseal: async () => {
      unsealing.attempts += 1;
      if (unsealing.hangs) await new Promise(() => undefined);
      if (unsealing.fails) throw new BarrierError('barrier_corrupt', 'the seal key does not open the records');
      state.sealed = unsealing.loadFailure !== undefined; // the service loader seals it again
    },
    onStateChange: (listener: typeof announce) => {
      announce = listener;
    },
    seal: () => {
      state.sealed = true;
    },
    expireMigration: () => undefined,
  };
  const events = new MemberEvents();
  const host = { opened: { seal: { type: 'static' }, providers: [] }, log: pino({ level: 'silent' }) };
  const services = {
    get loaded() {
      return Promise.resolve(unsealing.loadFailure);
    },
  };
  const member = { barrier, services, events, membership: { removed: false } };
  const seal = new MemberSeal(host as unknown as Parts[0], member as unknown as Parts[1]);
  events.on('reopeningEnded', () => void fitness.push(seal.isReopening));
  seal.follow();
  /** Seals the barrier as it does itself when its keys do not open the keyring of a new state. */
  const replaceState = (): void => {
    state.sealed = true;
    announce({ ...state, reason: 'the keys do not open the keyring' });
  };
  const settled = (): Promise<unknown> => until(() => fitness.length > 0);
  return { seal, state, unsealing, fitness, replaceState, settled };
}

describe('a node that unseals itself', () => {
  it('does so after it was sealed by a failure', async () => {
    const { seal, state } = unsealedNode();
    state.sealed = true;
    await seal.tick();
    expect(state.sealed).to.equal(false);
  });

  it('does not do so again at once when its services could not be loaded', async () => {
    const { seal, state, unsealing } = unsealedNode();
    state.sealed = true;
    unsealing.loadFailure = { error: new Error('the record core/mounts has an unknown format') };
    await seal.unsealAtStart();
    await seal.tick();
    await seal.tick();
    expect([state.sealed, unsealing.attempts]).to.deep.equal([true, 1]);
  });

  it('does so at once after another state has replaced its own, and counts as reopening until then', async () => {
    const { seal, state, replaceState, settled, fitness } = unsealedNode();
    replaceState();
    expect(seal.isReopening).to.equal(true);
    await settled();
    expect(state.sealed).to.equal(false);
    expect(fitness, 'its fitness is decided again, without that').to.deep.equal([false]);
  });

  it('does not count as reopening once it has failed to open the replaced state', async () => {
    const { state, unsealing, replaceState, settled, fitness } = unsealedNode();
    unsealing.fails = true;
    replaceState();
    await settled();
    expect(state.sealed).to.equal(true);
    expect(fitness).to.deep.equal([false]);
  });

  it('does not count as reopening after ten seconds, although it still tries', () => {
    const { seal, replaceState, unsealing } = unsealedNode();
    unsealing.hangs = true;
    replaceState();
    const beganMs = performance.now();
    const readings = [0, 9_000, 10_000].map((ms) => {
      performance.now = () => beganMs + ms;
      return seal.isReopening;
    });
    Reflect.deleteProperty(performance, 'now');
    expect(readings).to.deep.equal([true, true, false]);
  });

  it('does not count as reopening from the moment that an operator seals it', async () => {
    const { seal, replaceState, fitness } = unsealedNode();
    replaceState();
    seal.keepSealed();
    expect(seal.isReopening).to.equal(false);
    seal.seal();
    expect(fitness, 'its fitness is decided at once').to.deep.equal([false]);
  });

  it('never counts as reopening if its seal needs shares, or if an operator has sealed it', () => {
    const shamir = unsealedNode('shamir');
    shamir.replaceState();
    expect(shamir.seal.isReopening).to.equal(false);
    const sealed = unsealedNode();
    sealed.seal.keepSealed();
    sealed.replaceState();
    expect(sealed.seal.isReopening).to.equal(false);
  });

  it('stays sealed after an operator has sealed it, although callers without a token send shares before and after', async () => {
    const { seal, state } = unsealedNode();
    const share = Buffer.from('any');
    seal.keepSealed();
    await seal.unseal(share); // while the node still transfers its leadership
    seal.seal();
    expect(await errorOf(seal.unseal(share))).to.have.property('code', 'seal_mismatch');
    await seal.tick();
    expect(state.sealed).to.equal(true);
  });
});
