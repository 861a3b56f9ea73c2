import { BarrierError } from '@transitd/barrier';
import { expect } from 'chai';
import { pino } from 'pino';
import { NodeSeal } from '../src/node-seal.ts';
import { errorOf } from './opened-nodes.ts';

type Parts = ConstructorParameters<typeof NodeSeal>[0];

/** The seal of a node with a static key that fits. No share opens such a seal. */
function unsealedNode() {
  const state = { initialized: true, sealed: false };
  const barrier = {
    state,
    get sealStatus() {
      return { type: 'static', progress: 0, sealed: state.sealed };
    },
    unseal: async () => {
      if (state.sealed) throw new BarrierError('seal_mismatch', 'shares do not unseal a seal of type static');
      return barrier.sealStatus;
    },
    autoUnseal: async () => {
      state.sealed = false;
    },
    seal: () => {
      state.sealed = true;
    },
    expireMigration: () => undefined,
  };
  const nodeSeal = new NodeSeal({
    clusterMember: { removed: false, store: { barrier }, requireStore: () => ({ barrier }) },
    ...{ seal: { type: 'static' }, providers: [], log: pino({ level: 'silent' }) },
    ...{ joinAttempts: {}, serviceLoader: { loaded: Promise.resolve() } },
  } as unknown as Parts);
  return { nodeSeal, state };
}

describe('a node that unseals itself', () => {
  it('does so after it was sealed by a failure', async () => {
    const { nodeSeal, state } = unsealedNode();
    state.sealed = true;
    await nodeSeal.tick();
    expect(state.sealed).to.equal(false);
  });

  it('stays sealed after an operator has sealed it, although callers without a token send shares before and after', async () => {
    const { nodeSeal, state } = unsealedNode();
    const share = Buffer.from('any');
    nodeSeal.keepSealed();
    await nodeSeal.unseal(share); // while the node still transfers its leadership
    nodeSeal.seal();
    expect(await errorOf(nodeSeal.unseal(share))).to.have.property('code', 'seal_mismatch');
    await nodeSeal.tick();
    expect(state.sealed).to.equal(true);
  });
});
