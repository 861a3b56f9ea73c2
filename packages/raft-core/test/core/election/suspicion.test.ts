import { expect } from 'chai';
import { outlasting } from '../../../src/clock-rates.ts';
import type { NodeId } from '../../../src/types.ts';
import { Cluster, type TestNode } from '../cluster.ts';

const limits = { heartbeatMs: 50, leaseMs: 150 };
/** Until then a lease may hold that a voter backed when it heard the leader last. */
const waitMs = outlasting(limits.leaseMs);

/** Three nodes of which the first leads and is silent from now on. `told` learn that it refuses connections. */
function withSilentLeader(told: readonly NodeId[], { leaseMs = limits.leaseMs, announces = true } = {}): Cluster {
  const cluster = new Cluster([1, 2, 3], { limits: { ...limits, leaseMs } }, { 3: { seed: 7 } });
  cluster.elect(1);
  if (!announces) {
    // The first entries of a later term of the same leader arrive before its first heartbeat.
    for (const to of [2, 3]) {
      const envelope = { from: 1, to, term: 2, clusterId: 'c', session: 1 };
      const append = { type: 'Append', ...envelope, prevIndex: 0, prevTerm: 0, commit: 0, round: 0, entries: [] } as const;
      cluster.node(to).core.step(append, cluster.nowMs);
    }
  }
  cluster.passes = ({ from, to }) => from !== 1 && to !== 1;
  for (const id of told) cluster.node(id).core.refused(1);
  return cluster;
}

/** Returns the time at which a node campaigned, in ms from now, within half a second. */
function campaignMs(cluster: Cluster, id: NodeId): number | undefined {
  const startMs = cluster.nowMs;
  const { core } = cluster.node(id);
  while (cluster.nowMs < startMs + 500) {
    cluster.nowMs += 0.5;
    core.tick(cluster.nowMs);
    if (core.status().role !== 'follower') return cluster.nowMs - startMs;
  }
  return undefined;
}

const vote = {
  type: 'PreVote',
  from: 9,
  term: 9,
  clusterId: 'c',
  session: 0,
  lastIndex: 9,
  lastTerm: 9,
  transfer: false,
} as const;
const isRefused = (node: TestNode, atMs: number): boolean => {
  node.core.step({ ...vote, to: node.id }, atMs);
  const answer = node.pump().find(({ type }) => type === 'PreVoteResp');
  if (answer?.type !== 'PreVoteResp') throw new Error('no answer to a pre-vote');
  return answer.reject;
};

describe('a leader that closed its connections and refuses new ones', () => {
  it('is followed by another leader within two leases, if a quorum suspects it', () => {
    const cluster = withSilentLeader([2, 3]);
    for (let ms = 0; ms < 300; ms += 5) cluster.pass(5, [2, 3]);
    expect(cluster.leaders().filter((id) => id !== 1)).to.have.length(1);
    expect([...cluster.node(2).observed, ...cluster.node(3).observed]).to.include.members([
      'leader suspected',
      'vote given early',
    ]);
  });

  it('keeps its followers’ votes until its lease has ended by any clock; then they campaign in the order of their ids, 25 ms apart', () => {
    for (const { leader, follower, place } of [
      { leader: 1, follower: 2, place: 0 },
      { leader: 1, follower: 3, place: 1 },
      { leader: 1, follower: 4, place: 2 },
      { leader: 3, follower: 1, place: 0 },
      { leader: 3, follower: 4, place: 2 },
    ]) {
      const cluster = new Cluster([1, 2, 3, 4], { limits });
      cluster.elect(leader);
      cluster.node(follower).core.refused(leader);
      expect(campaignMs(cluster, follower), `${follower} after ${leader}`).to.equal(waitMs + 5 + 25 * place);
    }
    const { nowMs, ...cluster } = withSilentLeader([2]);
    const voter = cluster.nodes.get(2);
    if (voter === undefined) throw new Error('no node 2');
    expect(isRefused(voter, nowMs + waitMs - 1)).to.equal(true);
    expect(isRefused(voter, nowMs + waitMs)).to.equal(false);
  });

  it('does not lose the vote of a node that does not suspect it', () => {
    const cluster = withSilentLeader([2]);
    cluster.pass(900, [2, 3]);
    expect(cluster.leaders()).to.deep.equal([1]);
    expect(isRefused(cluster.node(3), cluster.nowMs)).to.equal(true);
  });

  it('causes one early campaign: if it is lost, the next one waits for the election timeout', () => {
    const cluster = withSilentLeader([2]);
    cluster.pass(900, [2, 3]);
    cluster.node(2).core.refused(1);
    cluster.pass(50, [2, 3]);
    expect(cluster.sentOf('PreVote').filter(({ from }) => from === 2)).to.have.length(2);
  });

  it('is trusted again as soon as it is heard', () => {
    const cluster = withSilentLeader([2, 3]);
    cluster.passes = () => true;
    cluster.pass(100);
    cluster.passes = ({ from, to }) => from !== 1 && to !== 1;
    expect(isRefused(cluster.node(2), cluster.nowMs + 900)).to.equal(true);
    expect(campaignMs(cluster, 3)).to.equal(undefined);
  });

  it('is trusted for the whole election timeout if it announced no lease in this term', () => {
    const cluster = withSilentLeader([2, 3], { announces: false });
    expect(isRefused(cluster.node(2), cluster.nowMs + 999)).to.equal(true);
    expect(isRefused(cluster.node(2), cluster.nowMs + 1_000)).to.equal(false);
    expect(campaignMs(cluster, 3)).to.equal(undefined);
  });

  it('is followed at once if it announced that it uses no leases', () => {
    expect(campaignMs(withSilentLeader([2], { leaseMs: 0 }), 2)).to.be.below(51);
  });

  it('does not shorten the wait of a node that has just started', () => {
    const cluster = new Cluster([1, 2, 3], { limits });
    cluster.elect(1);
    cluster.node(2).restart();
    cluster.node(2).core.tick(cluster.nowMs);
    cluster.pass(100);
    cluster.node(2).core.refused(1);
    expect(campaignMs(cluster, 2)).to.equal(undefined);
    expect(isRefused(cluster.node(2), cluster.nowMs + 390)).to.equal(true);
  });

  it('is suspected only for its own refusals: not for those of a follower, nor because it merely cannot be reached', () => {
    const cluster = withSilentLeader([]);
    cluster.node(2).core.refused(3);
    cluster.node(2).core.unreachable(1);
    expect(isRefused(cluster.node(2), cluster.nowMs + 999)).to.equal(true);
  });

  it('continues to lead if only its own connections fail: a refusal deposes nobody', () => {
    const cluster = new Cluster([1, 2, 3], { limits });
    const leader = cluster.elect(1);
    for (const id of [2, 3]) leader.core.refused(id);
    cluster.pass(500);
    expect(leader.core.status()).to.include({ role: 'leader', term: 1 });
  });
});
