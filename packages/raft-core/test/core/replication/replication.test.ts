import { expect } from 'chai';
import { HistoryConflict } from '../../../src/log/history-conflict.ts';
import { LogDamage } from '../../../src/log/log-damage.ts';
import type { Entry, Message } from '../../../src/types.ts';
import { bytes, Cluster, confOf, TestNode } from '../cluster.ts';

const entry = (index: number, term: number): Entry => ({ index, term, type: 'normal', data: bytes(`${term}.${index}`) });

/** A follower with a stored log. The time after its start in which it gives no vote has passed. */
function follower(terms: readonly number[], commit = 0): TestNode {
  const hardState = { term: terms.at(-1) ?? 0, vote: 0, commit };
  const node = new TestNode(2, { conf: confOf([1, 2, 3]), terms, start: { hardState } });
  node.core.tick(0);
  node.pump();
  return node;
}

function append(node: TestNode, prev: { index: number; term: number }, entries: readonly Entry[], more = {}): Message[] {
  const base = { from: 1, to: 2, term: 9, clusterId: 'c', session: 4, type: 'Append', commit: 0, round: 3 } as const;
  node.core.step({ ...base, prevIndex: prev.index, prevTerm: prev.term, entries, ...more }, 2_000);
  return node.pump();
}

describe('replication, on a follower', () => {
  it('acknowledges the last entry that the message shows, never its own last entry', () => {
    const node = follower([1, 1, 1, 1]);
    expect(append(node, { index: 1, term: 1 }, [entry(2, 1)])).to.deep.include({
      from: 2,
      to: 1,
      term: 9,
      clusterId: 'c',
      session: 4,
      type: 'AppendResp',
      ok: true,
      match: 2,
      round: 3,
    });
    expect(node.texts(), 'and a shorter message truncates nothing').to.have.length(4);
  });

  it('truncates only at a real conflict of terms, and from there', () => {
    const node = follower([1, 1, 2, 2]);
    append(node, { index: 1, term: 1 }, [entry(2, 1), entry(3, 3)]);
    expect(node.entries.map(({ term }) => term)).to.deep.equal([1, 1, 3]);
  });

  it('commits no further than the message has verified', () => {
    const node = follower([1, 1, 1, 1]);
    append(node, { index: 1, term: 1 }, [entry(2, 1)], { commit: 4 });
    expect(node.core.status().commitIndex).to.equal(2);
  });

  it('commits by a message without entries, up to where the logs agree, and does not answer it', () => {
    const commit = (node: TestNode, prevTerm: number, index: number, term = 9): Message[] => {
      const envelope = { from: 1, to: 2, term, clusterId: 'c', session: 4 };
      node.core.step({ ...envelope, type: 'Commit', prevIndex: 3, prevTerm, commit: index }, 2_000);
      return node.pump();
    };
    for (const { prevTerm, index, term, committed } of [
      { prevTerm: 1, index: 2, term: 9, committed: 2 },
      { prevTerm: 1, index: 4, term: 9, committed: 3 },
      { prevTerm: 2, index: 2, term: 9, committed: 0 },
      { prevTerm: 1, index: 2, term: 0, committed: 0 },
    ]) {
      const node = follower([1, 1, 1, 1]);
      expect(commit(node, prevTerm, index, term), 'its answer').to.deep.equal([]);
      expect(node.core.status().commitIndex, JSON.stringify({ prevTerm, index, term })).to.equal(committed);
    }
  });

  it('answers a message about committed entries with its own commit index', () => {
    const node = follower([1, 1, 1, 1], 3);
    expect(append(node, { index: 1, term: 1 }, [entry(2, 1)])[0]).to.include({ ok: true, match: 3 });
  });

  it('stops when a leader contradicts a committed entry: continuing would spread a bug', () => {
    for (const { prev, entries } of [
      { prev: { index: 3, term: 1 }, entries: [] },
      { prev: { index: 1, term: 1 }, entries: [entry(2, 1), entry(3, 1)] },
      { prev: { index: 0, term: 0 }, entries: [entry(1, 2)] },
    ]) {
      expect(() => append(follower([1, 1, 2, 2], 3), prev, entries)).to.throw(
        HistoryConflict,
        /entry \d+ of term \d+, and another one is committed/,
      );
    }
    const beat = {
      from: 1,
      to: 2,
      term: 9,
      clusterId: 'c',
      session: 1,
      type: 'Heartbeat',
      commit: 7,
      round: 1,
      leaseMs: 150,
    } as const;
    expect(() => follower([1, 1, 2, 2], 3).core.step(beat, 2_000)).to.throw(LogDamage, 'entry 7 was acknowledged');
  });

  it('hints at its last entry whose term is at most the leader’s term at the mismatch', () => {
    for (const { terms, prev, hint } of [
      { terms: [1, 1, 1], prev: { index: 9, term: 4 }, hint: { hintIndex: 3, hintTerm: 1 } },
      { terms: [1, 1, 5, 5], prev: { index: 4, term: 4 }, hint: { hintIndex: 2, hintTerm: 1 } },
      { terms: [3, 3, 3], prev: { index: 2, term: 2 }, hint: { hintIndex: 0, hintTerm: 0 } },
    ]) {
      expect(append(follower(terms), prev, [])[0]).to.include({ ok: false, prevIndex: prev.index, ...hint });
    }
  });

  it('answers a leader of an earlier term with its own term', () => {
    const node = follower([1, 1]);
    append(node, { index: 2, term: 1 }, []);
    const answers = append(node, { index: 2, term: 1 }, [], { term: 3 });
    expect(answers[0]).to.include({ term: 9, ok: false });
  });

  it('stops when one term has two leaders', () => {
    const node = follower([1, 1]);
    append(node, { index: 2, term: 1 }, []);
    expect(() => append(node, { index: 2, term: 1 }, [], { from: 3 })).to.throw(/one leader/);
  });
});

/** A leader of three nodes; the test plays the two others. */
function lonely(limits = {}) {
  const cluster = new Cluster([1, 2, 3], { limits });
  const leader = cluster.elect(1);
  cluster.passes = () => false;
  const session = (id: number) => cluster.sentOf('Append').find(({ to }) => to === id)?.session ?? 0;
  const answer = (body: object) => {
    const base = { from: 2, to: 1, term: 1, clusterId: 'c', session: session(2), round: 0, type: 'AppendResp' };
    leader.core.step({ ...base, ...body } as Message, cluster.nowMs);
    cluster.settle();
  };
  const peer = () => leader.core.peers().find(({ id }) => id === 2);
  const propose = (...names: string[]) => {
    for (const name of names) leader.core.propose(bytes(name));
  };
  /** Returns the messages that `act` sent to node 2. */
  const sentBy = (act: () => void): Message[] => {
    const from = cluster.sent.length;
    act();
    cluster.settle();
    return cluster.sent.slice(from).filter(({ to }) => to === 2);
  };
  return { cluster, leader, answer, peer, propose, sentBy };
}

const appended = (messages: readonly Message[]): string[] =>
  messages.flatMap((message) => (message.type === 'Append' ? [`${message.prevIndex}+${message.entries.length}`] : []));

describe('replication, on a leader', () => {
  it('sends the proposals of one turn in one message', () => {
    const { propose, sentBy } = lonely();
    expect(appended(sentBy(() => propose('a', 'b', 'c')))).to.deep.equal(['1+3']);
  });

  it('sends ahead of acknowledgements until the window is full by count', () => {
    const { propose, sentBy, answer, peer, leader } = lonely({ inflightMessagesMax: 2 });
    expect(['a', 'b', 'c'].flatMap((name) => appended(sentBy(() => propose(name))))).to.deep.equal(['1+1', '2+1']);
    expect(peer()).to.include({ match: 1, next: 4 });
    expect(leader.observed.has('window full')).to.equal(true);
    expect(appended(sentBy(() => answer({ ok: true, match: 2 })))).to.deep.equal(['3+1']);
  });

  it('limits the bytes of the window and of a message, and sends a larger entry alone', () => {
    const { propose, sentBy } = lonely({ inflightBytesMax: 20, messageBytesMax: 10 });
    expect(appended(sentBy(() => propose('aaaa', 'bbbb', 'cccc', 'd'.repeat(15), 'e')))).to.deep.equal(['1+2', '3+1', '4+1']);
  });

  it('sends an empty message through a full window after a heartbeat answer, so that a lost window recovers', () => {
    const { cluster, propose, sentBy, answer, leader, peer } = lonely({ inflightMessagesMax: 2 });
    for (const name of ['a', 'b', 'c']) {
      propose(name);
      cluster.settle();
    }
    cluster.pass(150, [1]);
    const heartbeat = { type: 'HeartbeatResp', fit: true, ok: undefined };
    expect(appended(sentBy(() => answer(heartbeat)))).to.deep.equal(['3+0']);
    expect(appended(sentBy(() => answer(heartbeat))), 'once per heartbeat').to.deep.equal([]);
    expect(leader.observed.has('empty Append sent through a full window')).to.equal(true);
    expect(appended(sentBy(() => answer({ ok: false, prevIndex: 3, hintIndex: 1, hintTerm: 1 })))).to.deep.equal(['1+3']);
    expect(peer()).to.include({ state: 'probe', next: 2 });
  });

  it('probes one message at a time, and again with each heartbeat', () => {
    const { cluster, leader, propose, sentBy } = lonely();
    leader.core.unreachable(2);
    expect(appended(sentBy(() => propose('a')))).to.deep.equal(['1+1']);
    expect(appended(sentBy(() => propose('b')))).to.deep.equal([]);
    expect(appended(sentBy(() => cluster.pass(150, [1])))).to.deep.equal(['1+2']);
  });

  it('returns to replicate on an acknowledgement that raises match, or equals it while probing', () => {
    const { leader, answer, peer } = lonely();
    leader.core.unreachable(2);
    expect(peer()?.state).to.equal('probe');
    answer({ ok: true, match: 0 });
    expect(peer()?.state, 'an old one says nothing').to.equal('probe');
    answer({ ok: true, match: 1 });
    expect(peer()?.state).to.equal('replicate');
  });

  it('probes from match on when a peer is unreachable', () => {
    const { leader, propose, cluster, peer } = lonely();
    propose('a', 'b');
    cluster.settle();
    expect(peer()?.next).to.equal(4);
    leader.core.unreachable(2);
    expect(peer()).to.include({ state: 'probe', match: 1, next: 2 });
  });

  it('ignores stale rejections: at or below match while replicating, of another probe while probing', () => {
    const { answer, peer, leader, propose, cluster } = lonely();
    propose('a', 'b');
    cluster.settle();
    answer({ ok: false, prevIndex: 1, hintIndex: 0, hintTerm: 0 });
    expect(peer()).to.include({ state: 'replicate', next: 4 });
    leader.core.unreachable(2);
    answer({ ok: false, prevIndex: 3, hintIndex: 1, hintTerm: 1 });
    expect(peer()).to.include({ state: 'probe', next: 2 });
    expect(leader.observed.has('stale rejection ignored')).to.equal(true);
  });

  it('drops answers of another session, whatever they say', () => {
    const { answer, peer, leader, propose, cluster } = lonely();
    propose('a');
    cluster.settle();
    answer({ ok: true, match: 2, session: 77 });
    expect(peer()?.match).to.equal(1);
    expect(leader.observed.has('answer of an earlier session ignored')).to.equal(true);
  });

  it('a late acknowledgement from before a removal and re-adding raises nothing', () => {
    const cluster = new Cluster([1, 2, 3]);
    const leader = cluster.elect(1);
    leader.core.propose(bytes('a'));
    const before = cluster.sentOf('AppendResp').length;
    cluster.settle();
    const late = cluster
      .sentOf('AppendResp')
      .slice(before)
      .find(({ from }) => from === 3);
    for (const to of ['none', 'voter'] as const) {
      expect(leader.core.proposeConf({ kind: 'change', members: [{ id: 3, to }] })).to.include({ accepted: true });
      if (to === 'voter') cluster.passes = (message) => message.from !== 3 && message.to !== 3;
      cluster.settle();
    }
    expect(leader.core.peers().find(({ id }) => id === 3)?.match).to.equal(0);
    if (late !== undefined) leader.core.step(late, cluster.nowMs);
    expect(leader.core.peers().find(({ id }) => id === 3)?.match).to.equal(0);
  });

  it('sends the commit index with the entries, or once without any, and neither misses nor repeats it', () => {
    const { answer, propose, sentBy } = lonely();
    propose('a');
    const news = sentBy(() => answer({ ok: true, match: 2 }));
    expect(news.map((message) => message.type === 'Commit' && message.commit)).to.deep.equal([2]);
    expect(sentBy(() => answer({ ok: true, match: 2 }))).to.deep.equal([]);
  });

  it('sends the commit index in each heartbeat, in case a message with it was lost, but never above the known match of the peer', () => {
    const { cluster, leader, propose, answer, sentBy } = lonely();
    propose('a');
    cluster.settle();
    const base = { from: 3, to: 1, term: 1, clusterId: 'c', round: 0, type: 'AppendResp' };
    const session = cluster.sentOf('Append').find(({ to }) => to === 3)?.session ?? 0;
    leader.core.step({ ...base, session, ok: true, match: 2 } as Message, cluster.nowMs);
    expect(leader.core.status().commitIndex).to.equal(2);
    const beats = () =>
      sentBy(() => cluster.pass(150, [1])).flatMap((message) => (message.type === 'Heartbeat' ? message.commit : []));
    expect(beats()).to.deep.equal([1]);
    answer({ ok: true, match: 2 });
    expect(beats()).to.deep.equal([2]);
  });

  it('corrects a follower with a different log with at most one probe per distinct term', () => {
    const mine = [1, 1, 1, 4, 4, 5, 5, 6, 6, 6];
    for (const other of [
      [1, 1, 1, 4, 4, 5, 5, 6, 6],
      [1, 1, 1, 4],
      [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6],
      [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7],
      [1, 1, 1, 4, 4, 4, 4],
      [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
      [],
    ]) {
      // Figure 7 of the paper: leader of term 8.
      const own = { 1: { terms: mine, start: { hardState: { term: 7, vote: 0, commit: 0 } } }, 2: { terms: other } };
      const cluster = new Cluster([1, 2, 3], {}, own);
      cluster.passes = ({ from, to }) => from !== 2 && to !== 2;
      const leader = cluster.elect(1);
      cluster.passes = ({ to }) => to !== 3;
      const from = cluster.sent.length;
      cluster.pass(400, [1]);
      expect(cluster.node(2).entries, other.join()).to.deep.equal(leader.entries);
      const probes = cluster.sentOf('AppendResp', from).filter(({ ok }) => !ok).length;
      expect(probes, other.join()).to.be.at.most(new Set([...mine, ...other]).size + 1);
    }
  });

  it('reads entries that are no longer in memory, one read at a time, and sends them', () => {
    const cluster = new Cluster(
      [1, 2, 3],
      {},
      { 1: { terms: [1, 1, 1, 1], start: { hardState: { term: 1, vote: 0, commit: 0 } } } },
    );
    const leader = cluster.elect(1);
    cluster.settle();
    expect(cluster.node(2).entries).to.deep.equal(leader.entries);
    expect(leader.observed.has('old entries read for a peer')).to.equal(true);
  });

  it('keeps waiting for the present read of a peer when the entries of an earlier one arrive late', () => {
    const stored = { terms: [1, 1, 1, 1], start: { hardState: { term: 1, vote: 0, commit: 0 } } };
    const cluster = new Cluster([1, 2, 3], {}, { 1: stored });
    cluster.passes = ({ type }) => type !== 'Append';
    const { core } = cluster.elect(1);
    const acknowledge = (match: number) => {
      const { term } = core.status();
      const session = cluster.sentOf('Append').find(({ to }) => to === 2)?.session ?? 0;
      const envelope = { from: 2, to: 1, term, clusterId: 'c', session } as const;
      core.step({ ...envelope, type: 'AppendResp', ok: true, match, round: 0 }, cluster.nowMs);
    };
    acknowledge(1);
    const [earlier] = core.ready().readLog;
    core.unreachable(2);
    acknowledge(2);
    const [present] = core.ready().readLog;
    expect([earlier, present]).to.deep.equal([
      { for: 2, lo: 2, hi: 4 },
      { for: 2, lo: 3, hi: 4 },
    ]);
    if (earlier !== undefined)
      core.logRead(
        earlier,
        [2, 3, 4].map((index) => entry(index, 1)),
      );
    expect(core.hasReady() ? core.ready().readLog : [], 'nothing is read twice').to.deep.equal([]);
    if (present !== undefined)
      core.logRead(
        present,
        [3, 4].map((index) => entry(index, 1)),
      );
    expect(appended(core.ready().immediate.filter(({ to }) => to === 2))).to.include('2+2');
  });

  it('drops entries that were read back if the peer no longer needs exactly these', () => {
    const { cluster, leader, propose, answer, peer } = lonely({ inflightMessagesMax: 1 });
    propose('a', 'b');
    cluster.settle();
    leader.core.logRead({ for: 2, lo: 2, hi: 2 }, [entry(2, 1)]);
    expect(leader.observed.has('old entries for a peer dropped after the read')).to.equal(true);
    expect(peer()).to.include({ next: 4 });
    answer({ ok: true, match: 3 });
    cluster.elect(1).core.logRead({ for: 9, lo: 2, hi: 2 }, [entry(2, 1)]);
  });
});
