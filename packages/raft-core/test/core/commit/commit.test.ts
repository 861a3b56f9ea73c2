import { expect } from 'chai';
import { bytes, Cluster, confOf } from '../cluster.ts';

describe('commit and proposals', () => {
  it('§5.4.2, figure 8: an entry of an earlier term is not committed by counting, only below one of its own term', () => {
    const own = { 1: { terms: [1, 2] }, 2: { terms: [1, 2] }, 3: { terms: [1] } };
    const cluster = new Cluster([1, 2, 3], {}, own);
    cluster.passes = (message) => message.type !== 'Append' || message.entries.every(({ type }) => type !== 'noop');
    const leader = cluster.elect(1);
    const { core } = leader;
    const session = cluster.sentOf('Append').find(({ to }) => to === 2)?.session ?? 0;
    const base = { from: 2, to: 1, term: 3, clusterId: 'c', session, type: 'AppendResp', ok: true, round: 0 } as const;
    core.step({ ...base, match: 2 }, cluster.nowMs);
    expect(core.status().commitIndex, 'entry 2 of term 2 is on two of three').to.equal(0);
    core.step({ ...base, match: 3 }, cluster.nowMs);
    expect(core.status().commitIndex).to.equal(3);
  });

  it('a joint configuration commits only entries that both halves hold', () => {
    const conf = confOf([1, 2, 3], { votersOutgoing: [1, 4, 5], autoLeave: false });
    const cluster = new Cluster([1, 2, 3, 4, 5], { conf });
    const leader = cluster.elect(1);
    const only = (...ids: number[]) => {
      cluster.passes = ({ from, to }) => ids.includes(from) && ids.includes(to);
      leader.core.propose(bytes(ids.join()));
      cluster.settle();
      return leader.core.status().commitIndex;
    };
    const committed = leader.core.status().commitIndex;
    expect(only(1, 4, 5), 'all of the outgoing half').to.equal(committed);
    cluster.passes = () => true;
    cluster.pass(300);
    expect(only(1, 2, 3), 'all of the incoming half').to.equal(committed + 1);
    cluster.passes = () => true;
    cluster.pass(300);
    expect(only(1, 2, 4), 'two of three in each').to.equal(committed + 3);
  });

  it('learners receive entries but do not count toward a quorum', () => {
    const cluster = new Cluster([1, 2, 3, 4], { conf: confOf([1, 2, 3], { learners: [4] }) });
    const leader = cluster.elect(1);
    cluster.passes = ({ from, to }) => ![2, 3].includes(from) && ![2, 3].includes(to);
    leader.core.propose(bytes('a'));
    cluster.settle();
    expect(cluster.node(4).texts()).to.include('a');
    expect(leader.core.status().commitIndex).to.equal(1);
  });

  it('refuses proposals above the limit of uncommitted bytes as busy, but never empty ones or configurations', () => {
    const cluster = new Cluster([1, 2, 3], { limits: { uncommittedBytesMax: 10 } });
    const leader = cluster.elect(1);
    cluster.passes = () => false;
    expect(leader.core.propose(new Uint8Array(50)), 'any size, while nothing else waits').to.include({ accepted: true });
    expect(leader.core.propose(new Uint8Array(1))).to.deep.equal({ accepted: false, reason: 'busy' });
    expect(leader.core.propose(new Uint8Array(0))).to.include({ accepted: true });
    expect(leader.core.proposeConf({ kind: 'change', members: [{ id: 4, to: 'learner' }] })).to.include({ accepted: true });
    cluster.passes = () => true;
    cluster.pass(300);
    expect(leader.core.propose(new Uint8Array(9))).to.include({ accepted: true });
  });

  it('only a leader takes proposals, and nothing is forwarded', () => {
    const cluster = new Cluster([1, 2, 3]);
    cluster.elect(1);
    const from = cluster.sent.length;
    expect(cluster.node(2).core.propose(bytes('a'))).to.deep.equal({ accepted: false, reason: 'notLeader' });
    expect(cluster.node(2).core.status().leader, 'but says where').to.equal(1);
    cluster.settle();
    expect(cluster.sent.length).to.equal(from);
  });
});
