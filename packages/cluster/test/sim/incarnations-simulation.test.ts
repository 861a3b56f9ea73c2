import type { NodeId } from '@transitd/raft-core';
import { SimRandom } from '@transitd/raft-sim';
import { expect } from 'chai';
import { type Incarnation, Incarnations, type IncarnationVerdict } from '../../src/transport/incarnations.ts';

const NODE: NodeId = 9;
const STEPS = 400;

/** A process that other nodes connect to. It forgets earlier connections when it ends. */
interface Peer {
  incarnations: Incarnations;
  connected: Incarnation | undefined;
  /** The incarnations that have connected, recorded independently of the code under test. */
  met: Incarnation[];
}

/**
 * Plays a node that restarts again and again, on a disk that is sometimes rolled back to an earlier state; returns the first wrong verdict.
 */
function play(
  seed: number,
  { setsBack, Judge }: { readonly setsBack: boolean; readonly Judge: typeof Incarnations },
): string | undefined {
  const random = new SimRandom(seed);
  const nonce = (): string => Array.from({ length: 4 }, () => random.uint32().toString(16).padStart(8, '0')).join('');
  let disk = 0;
  let earlier = 0;
  const begin = (): Incarnation => {
    disk += 1;
    return { number: disk, nonce: nonce() };
  };
  let incarnation = begin();
  const peers = Array.from({ length: 3 }, (): Peer => ({ incarnations: new Judge(), connected: undefined, met: [] }));
  for (let step = 0; step < STEPS; step++) {
    const peer = random.pick(peers);
    switch (random.pick(['restart', 'connect', 'connect', 'connect', 'lose', 'peerRestarts', 'keep', 'setBack'] as const)) {
      case 'restart':
        incarnation = begin();
        break;
      case 'setBack':
        if (setsBack) disk = earlier;
        incarnation = begin();
        break;
      case 'keep':
        earlier = disk;
        break;
      case 'lose':
        peer.connected = undefined;
        break;
      case 'peerRestarts':
        Object.assign(peer, { incarnations: new Judge(), connected: undefined, met: [] });
        break;
      case 'connect': {
        const verdict = peer.incarnations.judge(NODE, incarnation, peer.connected !== undefined);
        const expected = expectedOf(peer, incarnation);
        if (verdict !== expected) return `seed ${seed}, step ${step}: ${verdict} instead of ${expected}`;
        if (verdict !== 'in order') break;
        peer.incarnations.connected(NODE, incarnation);
        peer.connected = incarnation;
        peer.met.push(incarnation);
        break;
      }
    }
  }
  return undefined;
}

/**
 * Returns the right verdict. An incarnation that is not later than all that connected runs on a disk that was rolled back. A later one
 * waits until the earlier one is gone.
 */
function expectedOf({ met, connected }: Peer, incarnation: Incarnation): IncarnationVerdict {
  const others = met.filter(({ nonce }) => nonce !== incarnation.nonce);
  const isSame = met.at(-1)?.nonce === incarnation.nonce;
  if (!isSame && others.some(({ number }) => number >= incarnation.number)) return 'overtaken';
  return !isSame && connected !== undefined ? 'early' : 'in order';
}

const play200 = (options: Parameters<typeof play>[1]): string | undefined => {
  for (let seed = 1; seed <= 200; seed++) {
    const wrong = play(seed, options);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
};

const faults: Readonly<Record<string, typeof Incarnations>> = {
  'an incarnation with the same number counts as the same one': class extends Incarnations {
    override judge(peer: NodeId, incarnation: Incarnation, isConnected: boolean): IncarnationVerdict {
      return super.judge(peer, { ...incarnation, nonce: String(incarnation.number) }, isConnected);
    }
    override connected(peer: NodeId, incarnation: Incarnation): void {
      super.connected(peer, { ...incarnation, nonce: String(incarnation.number) });
    }
  },
  'an earlier incarnation is admitted while the later one is away': class extends Incarnations {
    override judge(peer: NodeId, incarnation: Incarnation, isConnected: boolean): IncarnationVerdict {
      const verdict = super.judge(peer, incarnation, isConnected);
      return isConnected || verdict !== 'overtaken' ? verdict : 'in order';
    }
  },
  'a later incarnation replaces one that is still connected': class extends Incarnations {
    override judge(peer: NodeId, incarnation: Incarnation): IncarnationVerdict {
      return super.judge(peer, incarnation, false);
    }
  },
};

describe('a simulated node that starts again and again', () => {
  it('is accepted by all peers as long as its disk keeps what it stored', () => {
    expect(play200({ setsBack: false, Judge: Incarnations })).to.equal(undefined);
  });

  it('is overtaken at every peer that knows a later incarnation, once its disk was rolled back', () => {
    expect(play200({ setsBack: true, Judge: Incarnations })).to.equal(undefined);
  });

  for (const [fault, Judge] of Object.entries(faults)) {
    it(`detects that ${fault}`, () => {
      expect(play200({ setsBack: true, Judge })).to.be.a('string');
    });
  }
});
