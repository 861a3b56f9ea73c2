import { expect } from 'chai';
import type { ConfChange, MemberChange } from '../../src/types.ts';
import { encodeConfState } from '../../src/wire/conf-state.ts';
import { bytes, Cluster, confOf, confsIn, TestNode } from './cluster.ts';

const change = (...members: [number, MemberChange['to']][]): ConfChange => ({
  kind: 'change',
  members: members.map(([id, to]) => ({ id, to })),
});

/** Three voters, and nodes that have just started as joiners, with an empty configuration. */
function three(...joiners: number[]): Cluster {
  const cluster = new Cluster([1, 2, 3]);
  for (const id of joiners) cluster.add(id, { conf: confOf([]) });
  return cluster;
}

describe('membership', () => {
  it('a configuration is in force as soon as its entry is in the log, committed or not', () => {
    const cluster = three();
    const leader = cluster.elect(1);
    cluster.passes = () => false;
    expect(leader.core.proposeConf(change([4, 'voter']))).to.include({ accepted: true, index: 2 });
    expect(leader.core.status()).to.deep.include({ confIndex: 2, commitIndex: 1 });
    expect(leader.core.status().conf.voters).to.deep.equal([1, 2, 3, 4]);
    expect(leader.core.peers().map(({ id }) => id)).to.deep.equal([2, 3, 4]);
  });

  it('a follower adopts a configuration on append and rolls back all that are superseded, even several at once', () => {
    const node = new TestNode(2, { conf: confOf([1, 2, 3]) });
    node.core.tick(0);
    const conf = (index: number, term: number, ...voters: number[]) => {
      return { index, term, type: 'conf' as const, data: encodeConfState(confOf(voters)) };
    };
    const append = { from: 1, to: 2, clusterId: 'c', session: 1, type: 'Append', commit: 0, round: 0 } as const;
    const entries = [conf(1, 1, 1, 2, 3, 4), conf(2, 2, 1, 2, 3, 4, 5)];
    node.core.step({ ...append, term: 2, prevIndex: 0, prevTerm: 0, entries }, 10);
    expect(node.core.status().conf.voters).to.have.length(5);
    const other = [{ index: 1, term: 3, type: 'noop' as const, data: new Uint8Array(0) }];
    node.core.step({ ...append, from: 3, term: 3, prevIndex: 0, prevTerm: 0, entries: other }, 20);
    expect(node.core.status()).to.deep.include({ confIndex: 0, conf: confOf([1, 2, 3]) });
    expect(node.observed.has('several configuration entries truncated')).to.equal(true);
    node.pump();
    expect(node.events.map((event) => event.type === 'confChanged' && event.index)).to.deep.equal([0, 1, 2, 0]);
  });

  it('a restart adopts all configurations of the log, uncommitted ones included', () => {
    const cluster = three();
    const leader = cluster.elect(1);
    cluster.passes = () => false;
    leader.core.proposeConf(change([4, 'voter']));
    cluster.settle();
    leader.restart();
    expect(leader.core.status()).to.deep.include({ confIndex: 2, conf: confOf([1, 2, 3, 4]) });
  });

  it('one change at a time, and none before the leader’s term has committed an entry', () => {
    const cluster = three();
    cluster.passes = ({ type }) => type !== 'AppendResp';
    const leader = cluster.elect(1);
    expect(leader.core.proposeConf(change([4, 'voter']))).to.deep.equal({ accepted: false, reason: 'confPending' });
    cluster.passes = () => true;
    cluster.pass(300);
    cluster.passes = () => false;
    expect(leader.core.proposeConf(change([4, 'voter']))).to.include({ accepted: true });
    expect(leader.core.proposeConf(change([5, 'voter']))).to.deep.equal({ accepted: false, reason: 'confPending' });
    cluster.passes = () => true;
    cluster.pass(300);
    expect(leader.core.proposeConf(change([5, 'learner']))).to.include({ accepted: true });
  });

  it('a change of more than one voter goes through a joint configuration, which ends automatically once it is committed', () => {
    const cluster = three(4, 5);
    const leader = cluster.elect(1);
    leader.core.proposeConf(change([2, 'none'], [3, 'learner'], [4, 'voter'], [5, 'voter']));
    expect(leader.core.status().conf).to.deep.include({ votersOutgoing: [1, 2, 3], learnersNext: [3], autoLeave: true });
    expect(leader.core.proposeConf(change([6, 'voter']))).to.deep.include({ accepted: false });
    cluster.pass(500);
    expect(leader.core.status().conf).to.deep.equal(confOf([1, 4, 5], { learners: [3] }));
    expect(confsIn(leader).map(({ votersOutgoing }) => votersOutgoing.length > 0)).to.deep.equal([true, false]);
    expect(cluster.node(4).core.status().conf).to.deep.equal(leader.core.status().conf);
  });

  it('a joint configuration is not left before it is committed', () => {
    const cluster = three(4, 5);
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to }) => from < 4 && to < 4;
    leader.core.proposeConf(change([2, 'none'], [3, 'none'], [4, 'voter'], [5, 'voter']));
    cluster.pass(600);
    expect(confsIn(leader)).to.have.length(1);
    expect(leader.core.status().commitIndex).to.equal(1);
  });

  it('the next leader ends a joint configuration that its predecessor began', () => {
    const cluster = three(4, 5);
    const leader = cluster.elect(1);
    cluster.passes = ({ to, from }) => to !== 1 || from === 1;
    leader.core.proposeConf(change([4, 'voter'], [5, 'voter']));
    cluster.settle();
    cluster.passes = ({ from, to }) => from !== 1 && to !== 1;
    cluster.pass(4_000);
    const [next = 0] = cluster.leaders().filter((id) => id !== 1);
    expect(cluster.node(next).observed.has('leader elected in a joint configuration')).to.equal(true);
    expect(cluster.node(next).core.status().conf).to.deep.equal(confOf([1, 2, 3, 4, 5]));
  });

  it('with autoLeave off a joint configuration is left only on request', () => {
    const cluster = three(4);
    const leader = cluster.elect(1);
    leader.core.proposeConf({
      kind: 'change',
      members: [
        { id: 3, to: 'none' },
        { id: 4, to: 'voter' },
      ],
      autoLeave: false,
    });
    cluster.pass(500);
    expect(leader.core.status().conf.votersOutgoing).to.deep.equal([1, 2, 3]);
    expect(leader.core.proposeConf({ kind: 'leave' })).to.include({ accepted: true });
    cluster.pass(300);
    expect(leader.core.status().conf).to.deep.equal(confOf([1, 2, 4]));
    expect(leader.core.proposeConf({ kind: 'leave' })).to.deep.equal({ accepted: false, reason: 'confInvalid' });
  });

  it('a leader that is no longer a voter leads until that is committed, reports it, transfers leadership and follows', () => {
    const cluster = three();
    const leader = cluster.elect(1);
    cluster.pass(300);
    leader.core.proposeConf(change([1, 'none']));
    expect(leader.core.propose(bytes('late'))).to.deep.equal({ accepted: false, reason: 'transferring' });
    cluster.settle();
    expect(leader.core.status().role).to.equal('follower');
    expect(leader.observed.has('removed leader stepped down')).to.equal(true);
    expect(cluster.leaders(), 'without an election timeout').to.have.length(1);
    expect(leader.events.at(-1)).to.deep.equal({ type: 'removedFromCluster', atIndex: 2 });
  });

  it('a removed leader does not count itself for its own removal', () => {
    const cluster = three();
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to }) => from !== 2 && to !== 2;
    leader.core.proposeConf(change([1, 'none']));
    cluster.settle();
    expect(leader.core.status(), 'one of {2, 3} is no majority').to.include({ commitIndex: 1, role: 'leader' });
  });

  it('a removed follower still receives the entry that removes it, and its commit, and then nothing', () => {
    const cluster = three();
    const leader = cluster.elect(1);
    leader.core.proposeConf(change([3, 'none']));
    cluster.pass(300);
    expect(cluster.node(3).events.at(-1)).to.deep.equal({ type: 'removedFromCluster', atIndex: 2 });
    expect(cluster.node(3).core.status()).to.include({ removed: true, commitIndex: 2 });
    expect(leader.core.peers().map(({ id }) => id)).to.deep.equal([2]);
    const from = cluster.sent.length;
    cluster.pass(4_000);
    expect(cluster.sent.slice(from).filter((message) => message.from === 3 || message.to === 3)).to.deep.equal([]);
  });

  it('a leader gives up after a while on a member that was removed while it was away', () => {
    const cluster = three();
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to }) => from !== 3 && to !== 3;
    leader.core.proposeConf(change([3, 'none']));
    cluster.pass(500);
    expect(leader.core.peers()).to.have.length(2);
    cluster.pass(2_500);
    expect(leader.core.peers()).to.have.length(1);
  });

  it('a removal notice ends campaigns, whatever its term, unless a later configuration names the node', () => {
    const node = new TestNode(1, { conf: confOf([1, 2, 3]) });
    node.core.tick(0);
    node.core.step({ from: 2, to: 1, term: 0, clusterId: 'c', session: 0, type: 'Removed', atIndex: 7 }, 10);
    for (let nowMs = 50; nowMs < 9_000; nowMs += 50) node.core.tick(nowMs);
    expect(node.core.status()).to.include({ role: 'follower', term: 0, removed: true });
    node.pump();
    expect(node.events.at(-1)).to.deep.equal({ type: 'removedFromCluster', atIndex: 7 });
    expect(node.core.propose(bytes('a'))).to.deep.equal({ accepted: false, reason: 'removed' });

    const told = new TestNode(1, { conf: confOf([1, 2, 3]), removed: true });
    told.core.tick(0);
    expect(told.core.status().removed, 'it is remembered').to.equal(true);
  });

  it('absence from another member’s configuration does not count as removal', () => {
    const cluster = three(4);
    const leader = cluster.elect(1);
    leader.core.proposeConf(change([4, 'learner']));
    cluster.pass(300);
    for (const { core } of cluster.nodes.values()) expect(core.status().removed).to.equal(false);
  });

  it('promotion and demotion keep the progress of a peer', () => {
    const cluster = three();
    const leader = cluster.elect(1);
    for (const to of ['learner', 'voter'] as const) {
      leader.core.proposeConf(change([3, to]));
      expect(leader.core.peers().find(({ id }) => id === 3)?.match, to).to.be.above(0);
      cluster.pass(300);
    }
    const sessions = new Set(cluster.sentOf('Append').flatMap(({ to, session }) => (to === 3 ? session : [])));
    expect(sessions.size).to.equal(1);
  });

  it('a damaged member is replaced: the new id learns first, then one joint change swaps the two', () => {
    const cluster = three(4);
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to }) => from !== 3 && to !== 3;
    for (const step of [change([4, 'learner']), change([3, 'none'], [4, 'voter'])]) {
      expect(leader.core.proposeConf(step)).to.include({ accepted: true });
      cluster.pass(600);
    }
    expect(leader.core.status().conf).to.deep.equal(confOf([1, 2, 4]));
  });
});
