import type { NodeId } from '@transitd/raft-core';
import { SimRandom } from '@transitd/raft-core/sim';
import { expect } from 'chai';
import { Incarnations, type IncarnationVerdict, type Run } from '../../src/transport/incarnations.ts';

const NODE: NodeId = 9;
const STEPS = 400;

/** A process that other nodes connect to. What it met is forgotten when it ends. */
interface Peer {
  runs: Incarnations;
  connected: Run | undefined;
  /** Written apart from the code under test. */
  met: Run[];
}

/** One node that starts again and again, on a disk that is sometimes set back to an earlier state; returns the first wrong verdict. */
function play(
  seed: number,
  { setsBack, Judge }: { readonly setsBack: boolean; readonly Judge: typeof Incarnations },
): string | undefined {
  const random = new SimRandom(seed);
  const nonce = (): string => Array.from({ length: 4 }, () => random.uint32().toString(16).padStart(8, '0')).join('');
  let disk = 0;
  let earlier = 0;
  const begin = (): Run => {
    disk += 1;
    return { incarnation: disk, nonce: nonce() };
  };
  let run = begin();
  const peers = Array.from({ length: 3 }, (): Peer => ({ runs: new Judge(), connected: undefined, met: [] }));
  for (let step = 0; step < STEPS; step++) {
    const peer = random.pick(peers);
    switch (random.pick(['restart', 'connect', 'connect', 'connect', 'lose', 'peerRestarts', 'keep', 'setBack'] as const)) {
      case 'restart':
        run = begin();
        break;
      case 'setBack':
        if (setsBack) disk = earlier;
        run = begin();
        break;
      case 'keep':
        earlier = disk;
        break;
      case 'lose':
        peer.connected = undefined;
        break;
      case 'peerRestarts':
        Object.assign(peer, { runs: new Judge(), connected: undefined, met: [] });
        break;
      case 'connect': {
        const verdict = peer.runs.judge(NODE, run, peer.connected !== undefined);
        const expected = expectedOf(peer, run);
        if (verdict !== expected) return `seed ${seed}, step ${step}: ${verdict} instead of ${expected}`;
        if (verdict !== 'in order') break;
        peer.runs.connected(NODE, run);
        peer.connected = run;
        peer.met.push(run);
        break;
      }
    }
  }
  return undefined;
}

/** A run that is not later than all those met is of a disk that was set back; one that is later waits until the one before is gone. */
function expectedOf({ met, connected }: Peer, run: Run): IncarnationVerdict {
  const others = met.filter(({ nonce }) => nonce !== run.nonce);
  const isSame = met.at(-1)?.nonce === run.nonce;
  if (!isSame && others.some(({ incarnation }) => incarnation >= run.incarnation)) return 'overtaken';
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
  'a run of the same number is taken for the same run': class extends Incarnations {
    override judge(peer: NodeId, run: Run, isConnected: boolean): IncarnationVerdict {
      return super.judge(peer, { ...run, nonce: String(run.incarnation) }, isConnected);
    }
    override connected(peer: NodeId, run: Run): void {
      super.connected(peer, { ...run, nonce: String(run.incarnation) });
    }
  },
  'an earlier run is let in while the later one is away': class extends Incarnations {
    override judge(peer: NodeId, run: Run, isConnected: boolean): IncarnationVerdict {
      const verdict = super.judge(peer, run, isConnected);
      return isConnected || verdict !== 'overtaken' ? verdict : 'in order';
    }
  },
  'a later run takes the place of one that is connected': class extends Incarnations {
    override judge(peer: NodeId, run: Run): IncarnationVerdict {
      return super.judge(peer, run, false);
    }
  },
};

describe('a simulated node that starts again and again', () => {
  it('is in order at all its peers, as long as its disk keeps what it stored', () => {
    expect(play200({ setsBack: false, Judge: Incarnations })).to.equal(undefined);
  });

  it('is overtaken at every peer that has met a later run, once its disk was set back', () => {
    expect(play200({ setsBack: true, Judge: Incarnations })).to.equal(undefined);
  });

  for (const [fault, Judge] of Object.entries(faults)) {
    it(`finds that ${fault}`, () => {
      expect(play200({ setsBack: true, Judge })).to.be.a('string');
    });
  }
});
