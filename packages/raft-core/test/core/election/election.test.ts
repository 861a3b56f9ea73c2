import { expect } from 'chai';
import { raftLimits } from '../../../src/core/contract/limits.ts';
import type { Message, MessageBody } from '../../../src/types.ts';
import { bytes, Cluster, confOf, TestNode } from '../cluster.ts';

const ask = { from: 1, to: 2, clusterId: 'c', session: 0, transfer: false } as const;
const answers = (node: TestNode): Message[] => node.pump();

describe('elections', () => {
  it('a cluster elects one leader, which the others follow', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.pass(3_000);
    expect(cluster.leaders()).to.have.length(1);
    const [leader = 0] = cluster.leaders();
    for (const { core } of cluster.nodes.values()) expect(core.status().leader).to.equal(leader);
  });

  it('deadlines are in ms, not in ticks: many ticks at once do not shorten them', () => {
    const cluster = new Cluster([1, 2, 3]);
    const { core } = cluster.node(1);
    for (let i = 0; i < 200; i++) core.tick(cluster.nowMs - 1);
    expect(core.status().role).to.equal('follower');
  });

  it('a pre-vote changes no term and no vote on any node', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.passes = ({ type }) => type === 'PreVote';
    cluster.pass(2_000, [1]);
    expect(cluster.node(1).core.status()).to.include({ role: 'precandidate', term: 0, vote: 0, leader: 0 });
    expect(cluster.node(2).core.status()).to.include({ term: 0, vote: 0 });
    expect(cluster.sentOf('PreVote')[0]).to.include({ term: 1, transfer: false });
  });

  it('a (pre-)vote is refused, without changing the term, while a leader was heard recently', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.elect(1);
    const { core } = cluster.node(2);
    for (const type of ['PreVote', 'Vote'] as const) {
      core.step({ ...ask, from: 3, type, term: 9, lastIndex: 9, lastTerm: 9 }, cluster.nowMs + 999);
      const [answer] = answers(cluster.node(2));
      expect(answer).to.deep.include({ reject: true, forTerm: 9, term: 1 });
      expect(core.status().term).to.equal(1);
    }
    core.step({ ...ask, from: 3, type: 'Vote', term: 9, lastIndex: 9, lastTerm: 9 }, cluster.nowMs + 1_200);
    expect(core.status()).to.include({ term: 9, vote: 3 });
  });

  it('a leader hears itself: it refuses votes while it leads', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.core.step({ ...ask, from: 3, to: 1, type: 'Vote', term: 9, lastIndex: 9, lastTerm: 9 }, cluster.nowMs);
    expect(leader.core.status()).to.include({ role: 'leader', term: 1 });
  });

  it('after a start a node gives no vote for an election timeout, except in a transfer: it may have backed a lease', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]) });
    node.core.tick(0);
    node.core.step({ ...ask, type: 'Vote', term: 1, lastIndex: 5, lastTerm: 1 }, 999);
    expect(answers(node)[0]).to.include({ reject: true });
    node.core.step({ ...ask, type: 'Vote', term: 1, lastIndex: 5, lastTerm: 1, transfer: true }, 999);
    expect(answers(node)[0]).to.include({ reject: false });
  });

  it('a node campaigns at once only if its whole log names no other member', () => {
    const alone = new TestNode(1);
    alone.core.tick(0);
    expect(alone.core.status().role).to.equal('candidate');
    const later = new TestNode(1, { conf: confOf([1, 2]) });
    later.core.tick(0);
    expect(later.core.status().role).to.equal('follower');
  });

  it('a request of a lower term is refused with the node’s own term, not dropped, and the sender adopts it', () => {
    const cluster = new Cluster([1, 2, 3], {}, { 2: { start: { hardState: { term: 7, vote: 0, commit: 0 } } } });
    cluster.passes = ({ to }) => to !== 3;
    cluster.pass(2_000, [1]);
    expect(cluster.sentOf('PreVoteResp')[0]).to.include({ reject: true, term: 7, forTerm: 1 });
    expect(cluster.node(1).core.status().term).to.equal(7);
  });

  it('pre-vote answers are matched by the requested term: a grant of a lagging node counts', () => {
    const terms = { hardState: { term: 7, vote: 0, commit: 0 } };
    const cluster = new Cluster([1, 2, 3], {}, { 1: { start: terms } });
    cluster.passes = ({ type, to }) => to !== 3 && type !== 'Vote';
    cluster.passUntil(() => cluster.node(1).core.status().role === 'candidate', [1]);
    expect(cluster.sentOf('PreVoteResp')[0]).to.include({ reject: false, term: 0, forTerm: 8 });
    expect(cluster.node(1).core.status()).to.include({ role: 'candidate', term: 8 });
    expect(cluster.node(1).observed.has('a lagging node granted its vote')).to.equal(true);
  });

  it('an answer to a pre-vote is not a vote, and an answer to an earlier campaign does not count in a later one', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.passes = ({ type }) => type !== 'Vote';
    const { core } = cluster.node(1);
    cluster.passUntil(() => core.status().role === 'candidate', [1]);
    const answer = {
      from: 2,
      to: 1,
      clusterId: 'c',
      session: 0,
      reject: false,
      longerLog: false,
      votedElsewhere: false,
    } as const;
    core.step({ ...answer, type: 'PreVoteResp', term: 1, forTerm: 1 }, cluster.nowMs);
    core.step({ ...answer, type: 'VoteResp', term: 0, forTerm: 0 }, cluster.nowMs);
    expect(core.status().role).to.equal('candidate');
    core.step({ ...answer, type: 'VoteResp', term: 1, forTerm: 1 }, cluster.nowMs);
    expect(core.status().role).to.equal('leader');
  });

  it('§5.4.1: refuses its vote to a candidate whose log lacks an entry that this one has', () => {
    for (const { candidate, granted } of [
      { candidate: { lastTerm: 2, lastIndex: 3 }, granted: true },
      { candidate: { lastTerm: 2, lastIndex: 2 }, granted: false },
      { candidate: { lastTerm: 1, lastIndex: 9 }, granted: false },
      { candidate: { lastTerm: 3, lastIndex: 1 }, granted: true },
    ]) {
      const node = new TestNode(2, { conf: confOf([1, 2, 3]), terms: [1, 1, 2] });
      node.core.tick(0);
      node.core.step({ ...ask, type: 'Vote', term: 4, ...candidate }, 1_000);
      const [answer] = answers(node);
      expect(answer).to.include({ reject: !granted, longerLog: !granted, term: 4 });
    }
  });

  it('one vote per term: the same candidate may get it again, no other may', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]) });
    node.core.tick(0);
    const vote = { ...ask, type: 'Vote', term: 1, lastIndex: 0, lastTerm: 0 } as const;
    const given = [1, 3, 1].map((from, i) => {
      node.core.step({ ...vote, from }, 1_000 + i);
      return answers(node).map((answer) => 'reject' in answer && !answer.reject);
    });
    expect(given).to.deep.equal([[true], [false], [true]]);
    expect(node.hardState).to.deep.include({ term: 1, vote: 1 });
    node.restart();
    node.core.tick(2_000);
    node.core.step({ ...vote, from: 3 }, 4_000);
    expect(answers(node)[0], 'also after a restart').to.include({ reject: true });
  });

  it('a term change clears the vote in the same write', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]), start: { hardState: { term: 1, vote: 3, commit: 0 } } });
    node.core.tick(0);
    node.core.step(
      { from: 1, to: 2, term: 2, clusterId: 'c', session: 1, type: 'Heartbeat', commit: 0, round: 1, leaseMs: 150 },
      5,
    );
    expect(node.core.ready().hardState).to.include({ term: 2, vote: 0 });
  });

  it('learners and nodes that do not know the candidate vote too: only the log decides', () => {
    const node = new TestNode(2, { conf: confOf([8, 9], { learners: [2] }) });
    node.core.tick(0);
    node.core.step({ ...ask, type: 'Vote', term: 1, lastIndex: 0, lastTerm: 0 }, 1_000);
    expect(answers(node)[0]).to.include({ reject: false });
  });

  it('the candidate counts only voters of its own configuration', () => {
    const cluster = new Cluster([1, 2, 3, 4, 5], { conf: confOf([1, 2, 3], { learners: [4, 5] }) });
    cluster.passes = ({ type }) => type !== 'Vote';
    const { core } = cluster.node(1);
    cluster.passUntil(() => core.status().role === 'candidate', [1]);
    for (const from of [4, 5]) {
      const answer = { from, to: 1, clusterId: 'c', session: 0, reject: false, longerLog: false, votedElsewhere: false } as const;
      core.step({ ...answer, type: 'VoteResp', term: 1, forTerm: 1 }, cluster.nowMs);
    }
    expect(core.status().role).to.equal('candidate');
  });

  for (const [name, conf] of Object.entries({
    'a learner': confOf([2, 3], { learners: [1] }),
    'a non-member': confOf([2, 3]),
    'a joiner with an empty configuration': confOf([]),
  })) {
    it(`${name} does not campaign`, () => {
      const node = new TestNode(1, { conf });
      for (let nowMs = 0; nowMs < 10_000; nowMs += 50) node.core.tick(nowMs);
      expect(node.core.status()).to.include({ role: 'follower', term: 0 });
      expect(node.pump()).to.deep.equal([]);
    });
  }

  it('messages of another cluster, or for another node, are dropped', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]) });
    node.core.tick(0);
    node.pump();
    const vote = { ...ask, type: 'Vote', term: 5, lastIndex: 0, lastTerm: 0 } as const;
    node.core.step({ ...vote, clusterId: 'other' }, 2_000);
    node.core.step({ ...vote, to: 3 }, 2_000);
    expect(node.core.hasReady()).to.equal(false);
    expect(node.core.status().term).to.equal(0);
  });

  it('a node stuck in a higher term rejoins: the leader learns of that term from its answer', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.elect(1);
    const { core } = cluster.node(3);
    core.step({ ...ask, from: 9, to: 3, type: 'Vote', term: 8, lastIndex: 0, lastTerm: 0, transfer: true }, cluster.nowMs);
    expect(core.status().term).to.equal(8);
    cluster.pass(4_000);
    expect(cluster.leaders()).to.have.length(1);
    expect(core.status().term).to.be.above(8);
    expect(core.status().leader).to.equal(cluster.leaders()[0]);
  });

  describe('a late answer of a later term', () => {
    const bodies: readonly MessageBody[] = [
      ...(['PreVoteResp', 'VoteResp'] as const).map((type) => {
        return { type, reject: true, forTerm: 1, longerLog: false, votedElsewhere: false };
      }),
      { type: 'AppendResp', ok: true, match: 1, round: 1 },
      { type: 'AppendResp', ok: false, prevIndex: 1, hintIndex: 0, hintTerm: 0, round: 1 },
      { type: 'HeartbeatResp', round: 1, fit: true },
      { type: 'SnapResult', index: 1, ok: false, lastIndex: 0 },
    ];
    for (const [receiver, to] of [
      ['leader', 1],
      ['follower', 3],
    ] as const) {
      it(`from a node outside of the configuration ends no leadership, sent to the ${receiver}`, () => {
        for (const body of bodies) {
          const cluster = new Cluster([1, 2, 3]);
          const { term } = cluster.elect(1).core.status();
          cluster.deliver({ ...body, from: 9, to, term: 99, clusterId: 'c', session: 0 });
          expect(cluster.node(to).core.status(), body.type).to.include({ role: receiver, term, leader: 1 });
          cluster.pass(500);
          expect(cluster.leaders(), body.type).to.deep.equal([1]);
          expect(cluster.node(1).core.status().term, body.type).to.equal(term);
        }
      });

      it(`from a member counts, sent to the ${receiver}`, () => {
        for (const body of bodies) {
          const cluster = new Cluster([1, 2, 3]);
          cluster.elect(1);
          cluster.deliver({ ...body, from: 2, to, term: 99, clusterId: 'c', session: 0 });
          expect(cluster.node(to).core.status(), body.type).to.include({ role: 'follower', term: 99, leader: 0 });
        }
      });
    }
  });

  it('check-quorum: a leader whose quorum is silent for an election timeout steps down and stops all leader traffic', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.passes = () => false;
    cluster.pass(950, [1]);
    expect(leader.core.status().role).to.equal('leader');
    cluster.pass(200, [1]);
    expect(leader.core.status()).to.include({ role: 'follower', leader: 0 });
    const from = cluster.sent.length;
    cluster.pass(500, [1]);
    expect(cluster.sentOf('Heartbeat', from)).to.deep.equal([]);
  });

  it('check-quorum ignores learners', () => {
    const cluster = new Cluster([1, 2, 3, 4], { conf: confOf([1, 2, 3], { learners: [4] }) });
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to }) => ![2, 3].includes(from) && ![2, 3].includes(to);
    cluster.pass(1_300, [1, 4]);
    expect(leader.core.status().role).to.equal('follower');
  });

  it('thesis §4.2.2: a node that lost its vote by an uncommitted entry campaigns, without counting itself', () => {
    const cluster = new Cluster([1, 2]);
    const one = cluster.elect(1);
    cluster.passes = () => false;
    one.core.proposeConf({ kind: 'change', members: [{ id: 1, to: 'none' }] });
    cluster.settle();
    one.restart();
    cluster.passes = () => true;
    one.core.tick(cluster.nowMs);
    cluster.pass(6_000);
    expect(one.observed.has('node without a vote campaigned')).to.equal(true);
    expect(cluster.leaders(), 'the removal went through, and the other leads').to.deep.equal([2]);
    expect(cluster.node(2).core.status().conf.voters).to.deep.equal([2]);
  });

  it('a new leader appends an empty entry of its term and probes every peer', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.passes = ({ type }) => type !== 'Append';
    const leader = cluster.elect(1);
    expect(leader.entries.map(({ type, term }) => [type, term])).to.deep.equal([['noop', 1]]);
    expect(leader.core.peers().map(({ state }) => state)).to.deep.equal(['probe', 'probe']);
    expect(leader.core.propose(bytes('a'))).to.deep.include({ accepted: true, index: 2 });
  });

  it('a vote that is still being written is waited for, not replaced', () => {
    const cluster = new Cluster([1, 2, 3]);
    const one = cluster.node(1);
    one.holdsWrites = true;
    cluster.pass(10_000, [1]);
    expect(one.core.status()).to.include({ role: 'candidate', term: 1 });
  });
});

describe('sealed and low nodes', () => {
  it('a sealed node votes, stores and acknowledges, but starts no election and refuses TimeoutNow', () => {
    const cluster = new Cluster([1, 2, 3], {}, { 3: { fitness: 'sealed' } });
    const leader = cluster.elect(1);
    leader.core.propose(bytes('a'));
    cluster.passes = ({ to, from }) => to !== 2 && from !== 2;
    cluster.settle();
    expect(leader.core.status().commitIndex).to.equal(2);
    const three = cluster.node(3);
    const order = { from: 1, to: 3, term: 1, clusterId: 'c', session: 2, type: 'TimeoutNow', lastIndex: 2, lastTerm: 1 } as const;
    three.core.step(order, cluster.nowMs);
    expect(three.core.status().role).to.equal('follower');
    const [refusal] = three.pump();
    expect(refusal).to.include({ to: 1, session: 2, type: 'HeartbeatResp', fit: false });
    cluster.passes = () => false;
    cluster.pass(10_000, [3]);
    expect(three.core.status()).to.include({ role: 'follower', term: 1 });
  });

  it('a sealed node is not a transfer target', () => {
    const cluster = new Cluster([1, 2], {}, { 2: { fitness: 'sealed' } });
    const leader = cluster.elect(1);
    cluster.pass(300);
    expect(leader.core.transferLeadership(undefined)).to.equal('noTarget');
    expect(leader.core.transferLeadership(2)).to.equal('noTarget');
  });

  it('a transfer to a node that has become unfit ends when that node answers, and the leader takes proposals again', () => {
    for (const learnsBy of ['TimeoutNow', 'Heartbeat'] as const) {
      const cluster = new Cluster([1, 2, 3]);
      const leader = cluster.elect(1);
      cluster.pass(300);
      cluster.passes = ({ to, type }) => to !== 2 || type === learnsBy;
      cluster.node(2).core.setFitness('sealed');
      expect(leader.core.transferLeadership(2)).to.equal(undefined);
      expect(leader.core.propose(bytes('a'))).to.deep.equal({ accepted: false, reason: 'transferring' });
      if (learnsBy === 'TimeoutNow') cluster.settle();
      else cluster.pass(raftLimits.heartbeatMs);
      expect(leader.core.propose(bytes('a')), learnsBy).to.deep.include({ accepted: true });
      expect(leader.core.transferLeadership(2), learnsBy).to.equal('noTarget');
    }
  });

  it('a leader whose whole cluster is sealed at the same moment begins no transfer', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.pass(300);
    leader.core.setFitness('sealed');
    cluster.settle();
    for (const id of [2, 3]) cluster.node(id).core.setFitness('sealed');
    cluster.pass(raftLimits.electionMs);
    for (const { core } of cluster.nodes.values()) core.setFitness('fit');
    cluster.pass(raftLimits.heartbeatMs);
    expect(cluster.sent.filter(({ type }) => type === 'TimeoutNow')).to.deep.equal([]);
    expect(leader.core.propose(bytes('a'))).to.deep.include({ accepted: true });
    expect(leader.core.leaseRead(cluster.nowMs), 'it still has its lease').to.be.a('number');
  });

  it('a sealed voter with the longer log leads only to pass that log on, and steps down', () => {
    const cluster = new Cluster([1, 2, 3], {}, { 3: { fitness: 'sealed' } });
    const leader = cluster.elect(1);
    cluster.passes = ({ to, from }) => to !== 2 && from !== 2;
    leader.core.propose(bytes('acknowledged'));
    cluster.settle();
    expect(leader.core.status().commitIndex).to.equal(2);
    cluster.nodes.delete(1);
    cluster.passes = () => true;
    cluster.pass(8_000);
    expect(cluster.node(3).observed.has('sealed node campaigned to pass its log on')).to.equal(true);
    expect(cluster.node(3).observed.has('sealed leader transferred leadership')).to.equal(true);
    expect(cluster.leaders()).to.deep.equal([2]);
    expect(cluster.node(2).texts()).to.include('acknowledged');
    expect(cluster.node(3).core.propose(bytes('x'))).to.deep.include({ accepted: false });
  });

  it('a sealed leader refuses proposals and reads, transfers leadership, and steps down after two election timeouts', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    cluster.pass(300);
    leader.core.setFitness('sealed');
    expect(leader.core.propose(bytes('a'))).to.deep.equal({ accepted: false, reason: 'sealed' });
    expect(leader.core.readIndex(1)).to.equal('sealed');
    expect(leader.core.leaseRead(cluster.nowMs)).to.equal(undefined);
    cluster.pass(2 * raftLimits.heartbeatMs);
    expect(cluster.leaders()).to.deep.equal([2]);

    const alone = new Cluster([1, 2, 3], {}, { 2: { fitness: 'sealed' }, 3: { fitness: 'sealed' } });
    const last = alone.elect(1);
    last.core.setFitness('sealed');
    alone.pass(1_900);
    expect(last.core.status().role).to.equal('leader');
    alone.pass(200);
    expect(last.core.status().role).to.equal('follower');
  });

  it('a leader with little disk transfers leadership to a fit voter, once, and stays if no voter is fit', () => {
    const cluster = new Cluster([1, 2, 3], {}, { 2: { fitness: 'low' } });
    const leader = cluster.elect(1);
    cluster.pass(300);
    leader.core.setFitness('low');
    cluster.pass(2 * raftLimits.heartbeatMs);
    expect(cluster.leaders()).to.deep.equal([3]);

    const low = new Cluster([1, 2], { fitness: 'low' });
    low.pass(3_000, [1]);
    expect(low.leaders(), 'low nodes do not take turns').to.deep.equal([1]);
    low.pass(5_000);
    expect(low.leaders()).to.deep.equal([1]);
  });
});
