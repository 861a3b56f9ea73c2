import { type LogIndex, outlastedBy } from '@transitd/raft-core';
import { expect } from 'chai';
import { readRoleOf } from '../../src/ports/read-role.ts';
import { Heartbeats } from '../../src/standbys/heartbeats.ts';
import { Standbys, type StandbysOptions } from '../../src/standbys/standbys.ts';
import { type Played, type PlayOptions, playStandbys, realDecisions } from './play.ts';

const EVENTS = 15_000;
const FIXED = 16;
const FRESH = 8;

async function play(first: number, count: number): Promise<Played> {
  const sum: Played = { revocations: 0, waited: 0, standbyReads: 0, activeReads: 0 };
  for (let seed = first; seed < first + count; seed++) {
    const { failure, ...played } = await playStandbys(seed, EVENTS);
    expect(failure, `seed ${seed}`).to.equal(undefined);
    for (const key of ['revocations', 'waited', 'standbyReads', 'activeReads'] as const) sum[key] += played[key];
  }
  return sum;
}

/** `firstSeed` found the fault when it was chosen; after a change of the core, a later one may. */
const faults: Readonly<Record<string, PlayOptions & { readonly firstSeed?: number }>> = {
  'a revocation waits for no node': {
    decisions: {
      ...realDecisions,
      Standbys: class extends Standbys {
        override async confirmed(): Promise<void> {}
      },
    },
  },
  'a revocation waits only for nodes that have sent a heartbeat in this term': {
    decisions: {
      ...realDecisions,
      Standbys: class extends Standbys {
        override termBegins(_others: Parameters<Standbys['termBegins']>[0], term: number): void {
          super.termBegins(() => [], term);
        }
      },
    },
    firstSeed: 25,
  },
  'a revocation waits for less time than two clocks may differ by': {
    decisions: {
      ...realDecisions,
      Standbys: class extends Standbys {
        constructor(options: StandbysOptions) {
          super({ ...options, servesForMs: outlastedBy(options.servesForMs * 1.1) });
        }
      },
    },
    firstSeed: 35,
  },
  'a heartbeat counts from the time of its answer': {
    decisions: {
      ...realDecisions,
      Heartbeats: class extends Heartbeats {
        override answered(answer: Parameters<Heartbeats['answered']>[0], times: Parameters<Heartbeats['answered']>[1]): void {
          super.answered(answer, { ...times, sentMs: times.receivedMs });
        }
      },
    },
    firstSeed: 108,
  },
  'a heartbeat counts before its commit index is applied': {
    decisions: {
      ...realDecisions,
      Heartbeats: class extends Heartbeats {
        override appliedSentMs(): number | undefined {
          return super.appliedSentMs(Number.POSITIVE_INFINITY as LogIndex);
        }
      },
    },
  },
  'a node reads by a permission from before a jump of its clocks': {
    decisions: { ...realDecisions, readRoleOf: (facts) => readRoleOf({ ...facts, clockJumpedMs: Number.NEGATIVE_INFINITY }) },
    firstSeed: 40,
  },
  'a heartbeat is answered by a node that has not confirmed its leadership': {
    decisions: { ...realDecisions, heartbeatNeedsLeadership: false },
    // A leader with one standby on its side of a partition, and a permission to serve that expires before the leader steps down.
    nodes: 5,
    intervalMs: 200,
    firstSeed: 270,
  },
};

describe('a simulated cluster of performance standbys', () => {
  it(`serves no state from before a revocation in ${FIXED} fixed seeds`, async () => {
    const played = await play(1, FIXED);
    expect(played.revocations).to.be.above(500);
    expect(played.waited).to.be.above(5);
    expect(played.standbyReads).to.be.above(2_000);
    expect(played.activeReads).to.be.above(1_000);
  });

  it('serves no state from before a revocation while the removal of a standby is not applied yet', async () => {
    expect((await play(300_000_465, 1)).revocations).to.be.above(0);
  });

  const base = Number(process.env['SIM_SEED'] ?? crypto.getRandomValues(new Uint32Array(1))[0]) % 2 ** 31;
  it(`serves no state from before a revocation in ${FRESH} fresh seeds (from ${base} on)`, async () => {
    expect((await play(base, FRESH)).revocations).to.be.above(0);
  });

  it('gives the same result for the same seed', async () => {
    expect(await playStandbys(7, EVENTS)).to.deep.equal(await playStandbys(7, EVENTS));
  });

  for (const [fault, options] of Object.entries(faults)) {
    it(`detects that ${fault}`, async () => {
      let found: string | undefined;
      const { firstSeed = 1 } = options;
      for (let seed = firstSeed; seed < firstSeed + 300 && found === undefined; seed++)
        found = (await playStandbys(seed, EVENTS, options)).failure;
      expect(found).to.match(/^after a revocation is answered no node serves/);
    });
  }
});
