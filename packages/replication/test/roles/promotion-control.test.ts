import type { ReplicationState } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { ReplicationError } from '../../src/replication-error.ts';
import { type PromotableCluster, type Promote, PromotionControl } from '../../src/roles/promotion-control.ts';

const [set, id] = ['01', '0a'].map((digits) => digits.repeat(16)) as [string, string];
const fenceMs = 5_000;

/** The active node of a secondary, whose time passes only while a promotion waits. */
function node() {
  const clock = { nowMs: 100_000, term: 3 as number | undefined };
  const state: ReplicationState = {
    ...{ role: 'secondary', set, local: ['core/'], index: 7, offset: 0, seen: 1, fenceMs },
    epochs: [{ number: 1, id, start: 1 }],
  };
  const heartbeat = { at: { number: 1, id, index: 9 }, demoted: false, heardMs: 80_000 };
  const commits: Promote[] = [];
  const committed = { isPromoting: undefined as boolean | undefined, results: [true] };
  const commit = async (decision: Promote): Promise<boolean> => {
    commits.push(decision);
    committed.isPromoting = cluster.secondary.isPromoting;
    return committed.results.shift() ?? false;
  };
  const cluster = {
    activeTerm: () => clock.term,
    state: () => state,
    secondary: { isPromoting: false, lastHeard: heartbeat, answeredMs: 99_000 },
    isCounted: async () => true,
    promote: async (decision) => ((await commit(decision)) ? decision : undefined),
    leave: (decision) => commit(decision),
    waits: () => undefined,
    delay: async (ms) => {
      clock.nowMs += ms;
    },
  } satisfies PromotableCluster<Promote>;
  const control = new PromotionControl<Promote>(cluster, { recentMs: 10_000, clock: { nowMs: () => clock.nowMs } });
  return { clock, cluster, control, commits, committed };
}

/** A node that has been active for long. */
function settledNode() {
  const made = node();
  made.clock.nowMs = 0;
  made.control.noteTerm();
  made.clock.nowMs = 100_000;
  return made;
}

describe('the control of promotions on one node', () => {
  it('waits after the last answer to a heartbeat until the fence has closed, and answers none until the step is committed', async () => {
    const { clock, cluster, control, committed } = settledNode();
    await control.promote({ force: true });
    expect(clock.nowMs).to.be.greaterThan(99_000 + fenceMs);
    expect(committed.isPromoting).to.equal(true);
    expect(cluster.secondary.isPromoting).to.equal(false);
  });

  it('counts the silence only from the moment at which this node became active again', async () => {
    const { clock, control } = settledNode();
    clock.term = undefined;
    control.noteTerm();
    clock.term = 5;
    clock.nowMs = 200_000; // meanwhile another node may have answered heartbeats
    await control.promote({ force: true });
    expect(clock.nowMs).to.be.greaterThan(200_000 + fenceMs);
  });

  it('decides again when entries have arrived, and gives up after some attempts', async () => {
    const { control, commits, committed } = settledNode();
    committed.results = [false, false, true];
    await control.promote({ force: true });
    expect(commits).to.have.length(3);
    committed.results = [];
    const error = await control.promote({ force: true }).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ReplicationError).with.property('message').that.includes('still arrive');
  });

  it('commits once for calls at the same time, and does not leave the set meanwhile', async () => {
    const { control, commits } = settledNode();
    const [first, second, left] = await Promise.allSettled([
      control.promote({ force: true }),
      control.promote({ force: true }),
      control.leave({ force: true }),
    ]);
    expect(commits).to.have.length(1);
    expect([first.status, second.status, left.status]).to.deep.equal(['fulfilled', 'fulfilled', 'rejected']);
  });

  it('ends without a change when this node is no longer active', async () => {
    const { clock, cluster, control, commits } = settledNode();
    cluster.delay = async () => {
      clock.term = undefined;
    };
    const error = await control.promote({ force: true }).catch((reason: unknown) => reason);
    expect(error).to.have.property('code', 'not_leader');
    expect(commits).to.deep.equal([]);
    expect(cluster.secondary.isPromoting).to.equal(false);
  });
});
