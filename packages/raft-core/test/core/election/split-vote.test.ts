import { expect } from 'chai';
import type { Message } from '../../../src/types.ts';
import { bytes, Cluster, confOf, TestNode } from '../cluster.ts';

type Refusal = { readonly longerLog?: boolean; readonly votedElsewhere?: boolean };

/** Returns a candidate of term 1 among these nodes, before any of them has answered. */
function candidate(ids: readonly number[]): { cluster: Cluster; node: TestNode; refuse: (from: number, why: Refusal) => void } {
  const cluster = new Cluster(ids);
  cluster.passes = ({ type }) => type !== 'Vote';
  const node = cluster.node(1);
  cluster.passUntil(() => node.core.status().role === 'candidate', [1]);
  cluster.passes = () => false;
  const refuse = (from: number, { longerLog = false, votedElsewhere = false }: Refusal): void => {
    const answer = { from, to: 1, clusterId: 'c', session: 0, term: 1, forTerm: 1, reject: true } as const;
    node.core.step({ ...answer, type: 'VoteResp', longerLog, votedElsewhere }, cluster.nowMs);
  };
  return { cluster, node, refuse };
}

/** Returns the milliseconds until the node sends pre-votes again. */
function asksAgainAfter(cluster: Cluster): number {
  const fromMs = cluster.nowMs;
  const sent = cluster.sent.length;
  cluster.passUntil(() => cluster.sentOf('PreVote', sent).length > 0, [1]);
  return cluster.nowMs - fromMs;
}

describe('a split vote', () => {
  it('between two candidates is decided after the random part of the timeout, even if the third voter is dead', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.passes = ({ to, from }) => to !== 3 && from !== 3;
    // Both start at the same moment, and hear of each other only after voting for themselves.
    for (const id of [1, 2]) cluster.node(id).core.tick(cluster.nowMs + 2_000);
    cluster.nowMs += 2_000;
    cluster.settle();
    expect(cluster.leaders()).to.deep.equal([]);
    const startMs = cluster.nowMs;
    cluster.passUntil(() => cluster.leaders().length === 1, [1, 2]);
    expect(cluster.nowMs - startMs, 'less than an election timeout').to.be.below(1_000);
    for (const id of [1, 2]) expect([...cluster.node(id).observed]).to.include('a split vote was retried early');
  });

  it('is reported by a voter that gave its vote of that term to another candidate', () => {
    const ask = { to: 2, clusterId: 'c', session: 0, transfer: false, type: 'Vote', term: 1, lastIndex: 2, lastTerm: 1 } as const;
    const voter = (): TestNode => {
      const node = new TestNode(2, { conf: confOf([1, 2, 3]), terms: [1, 1] });
      node.core.tick(0);
      return node;
    };
    const answersOf = (asks: readonly { readonly from: number; readonly lastIndex?: number }[], atMs: number): Message[] => {
      const node = voter();
      for (const each of asks) node.core.step({ ...ask, term: 5, ...each }, atMs);
      return node.pump();
    };
    expect(answersOf([{ from: 1 }, { from: 3 }], 1_000)[1]).to.include({ reject: true, longerLog: false, votedElsewhere: true });
    const shorter = answersOf([{ from: 1 }, { from: 3, lastIndex: 1 }], 1_000)[1];
    expect(shorter, 'a longer log is the reason that counts').to.include({ longerLog: true, votedElsewhere: false });
    expect(answersOf([{ from: 3 }], 500)[0], 'after a start').to.include({ reject: true, votedElsewhere: false });
  });

  it('is not reported by a voter that has heard a leader, even one of the same term', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.elect(1);
    const { core } = cluster.node(2);
    const vote = {
      from: 3,
      to: 2,
      clusterId: 'c',
      session: 0,
      transfer: false,
      type: 'Vote',
      lastIndex: 9,
      lastTerm: 9,
    } as const;
    for (const term of [1, 7]) {
      core.step({ ...vote, term }, cluster.nowMs);
      expect(cluster.node(2).pump()[0]).to.include({ reject: true, votedElsewhere: false });
    }
  });

  it('makes the candidate retry soon', () => {
    for (const ids of [
      [1, 2, 3],
      [1, 2, 3, 4, 5],
    ]) {
      const { cluster, refuse } = candidate(ids);
      for (const from of ids.slice(1)) refuse(from, { votedElsewhere: true });
      expect(asksAgainAfter(cluster)).to.be.at.most(1_050);
    }
  });

  for (const [name, why] of Object.entries({
    'a longer log': { longerLog: true },
    'a heard leader or a start': {},
  })) {
    for (const order of ['before', 'after'] as const) {
      it(`waits a whole election timeout if a vote was refused for ${name} ${order} one was split`, () => {
        const { cluster, refuse } = candidate([1, 2, 3, 4, 5]);
        const refusals = [() => refuse(2, why), () => refuse(3, { votedElsewhere: true })];
        for (const give of order === 'before' ? refusals : refusals.reverse()) give();
        refuse(4, { votedElsewhere: true });
        expect(asksAgainAfter(cluster)).to.be.at.least(1_000);
      });
    }
  }

  it('is not retried before this node itself would vote: a transfer may start a campaign within the promise to a leader', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(2);
    leader.core.propose(bytes('a'));
    cluster.settle();
    const { core } = cluster.node(1);
    const { lastIndex } = core.status();
    const heardMs = cluster.nowMs;
    cluster.passes = () => false;
    const order = { from: 2, to: 1, clusterId: 'c', session: 1, term: 1, lastTerm: 1 } as const;
    core.step({ ...order, type: 'TimeoutNow', lastIndex }, heardMs);
    cluster.settle();
    const answer = { from: 3, to: 1, clusterId: 'c', session: 0, term: 2, forTerm: 2, reject: true } as const;
    core.step({ ...answer, type: 'VoteResp', longerLog: false, votedElsewhere: true }, heardMs);
    const sent = cluster.sent.length;
    cluster.passUntil(() => cluster.sentOf('PreVote', sent).length > 0, [1]);
    expect(cluster.nowMs - heardMs).to.be.at.least(1_000);
  });

  it('ends when a leader is heard, which the node then trusts for a whole election timeout', () => {
    const { cluster, node, refuse } = candidate([1, 2, 3]);
    refuse(2, { votedElsewhere: true });
    const heartbeat = {
      from: 2,
      to: 1,
      clusterId: 'c',
      session: 1,
      term: 1,
      type: 'Heartbeat',
      commit: 0,
      round: 1,
      leaseMs: 150,
    } as const;
    node.core.step(heartbeat, cluster.nowMs);
    expect(node.core.status()).to.include({ role: 'follower', leader: 2 });
    expect(asksAgainAfter(cluster)).to.be.at.least(1_000);
  });
});
