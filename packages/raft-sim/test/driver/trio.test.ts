import type {
  ConfChange,
  ConfRefusalReason,
  ConfState,
  MemberChange,
  ProposalOutcome,
  ReadOutcome,
  TransferOutcome,
} from '@transitd/raft-core';
import { expect } from 'chai';
import { confOf } from '../../../raft-core/test/core/cluster.ts';
import type { HistoryResult } from '../../src/fakes/memory-state-machine.ts';
import { bytes } from './observed.ts';
import { type Member, Trio, writtenBy } from './trio.ts';

type Outcome = ProposalOutcome<HistoryResult, ConfRefusalReason>;

const change = (...members: [number, MemberChange['to']][]): ConfChange => ({
  kind: 'change',
  members: members.map(([id, to]) => ({ id, to })),
});
const kindOf = (outcome: Outcome | ReadOutcome | TransferOutcome): string =>
  outcome.kind === 'refused' ? outcome.reason : outcome.kind;

function propose({ driver }: Member, names: readonly string[]): string[] {
  const outcomes: string[] = [];
  for (const name of names) driver.propose(bytes(name), (outcome) => outcomes.push(`${name} ${kindOf(outcome)}`));
  return outcomes;
}

function changed({ driver }: Member, conf: ConfChange): string[] {
  const outcomes: string[] = [];
  driver.proposeConf(conf, (outcome) => outcomes.push(kindOf(outcome)));
  return outcomes;
}

const cutOff =
  (...ids: number[]) =>
  ({ from, to }: { from: number; to: number }): boolean =>
    !ids.includes(from) && !ids.includes(to);

describe('Driver, one of three', () => {
  it('replicates every entry that it answers as applied to the state of all nodes', () => {
    const trio = new Trio();
    const outcomes = propose(trio.leader(), ['a', 'b']);
    trio.clock.runUntil(() => outcomes.length === 2);
    expect(outcomes).to.deep.equal(['a applied', 'b applied']);
    trio.clock.runFor(300);
    for (const member of trio.members.values()) expect(writtenBy(member)).to.deep.equal(['a', 'b']);
  });

  it('sends no acknowledgement and no vote before the state it vouches for is on disk', () => {
    const trio = new Trio({ logDelayMs: (id) => id * 7 });
    trio.passes = (message) => {
      const { disk } = trio.member(message.from);
      if (message.type === 'AppendResp' && message.ok) expect(disk.lastIndex).to.be.at.least(message.match);
      if (message.type === 'VoteResp' && !message.reject) expect(disk.hardState.vote).to.equal(message.to);
      if (message.type === 'Vote') expect(disk.hardState).to.include({ term: message.term, vote: message.from });
      if (message.type !== 'PreVote') expect(disk.hardState.term, message.type).to.be.at.least(message.term);
      return true;
    };
    const leader = trio.leader();
    for (let i = 0; i < 30; i++) {
      propose(leader, [`n${i}`]);
      trio.clock.runFor(3);
    }
    trio.clock.runUntil(() => writtenBy(leader).length === 30);
    expect(trio.sent.filter(({ type }) => type === 'VoteResp')).not.to.deep.equal([]);
  });

  it('sends entries in parallel with its own write, so that slow disks work at the same time', () => {
    const trio = new Trio({ logDelayMs: () => 20 });
    const leader = trio.leader();
    const startMs = trio.clock.now();
    const outcomes = propose(leader, ['a']);
    trio.clock.runUntil(() => outcomes.length === 1);
    expect(trio.clock.now() - startMs).to.be.below(35);
  });

  it('answers a proposal by the entry committed at its index, even after losing leadership', () => {
    const trio = new Trio();
    const old = trio.leader();
    trio.passes = cutOff(old.id);
    const outcomes = propose(old, ['lost']);
    trio.clock.runUntil(() => trio.others(old).some(({ driver }) => driver.status().ready));
    trio.passes = () => true;
    trio.clock.runUntil(() => outcomes.length === 1);
    expect(outcomes).to.deep.equal(['lost lostLeadership']);
  });

  it('answers that an outcome is unknown when it cannot learn it for two election timeouts', () => {
    const trio = new Trio();
    const old = trio.leader();
    trio.passes = cutOff(old.id);
    const outcomes = propose(old, ['cut off']);
    trio.clock.runFor(2_500);
    expect(outcomes).to.deep.equal([]);
    trio.clock.runFor(1_500);
    expect(outcomes).to.deep.equal(['cut off unknown']);
  });

  it('refuses proposals on followers, and reads there by asking the leader', () => {
    const trio = new Trio();
    const leader = trio.leader();
    const written = propose(leader, ['a']);
    trio.clock.runUntil(() => written.length === 1);
    const [follower] = trio.others(leader);
    if (follower === undefined) return;
    expect(follower.driver.status()).to.include({ leader: leader.id, ready: false });
    const seen: string[] = propose(follower, ['b']);
    follower.driver.readIndex((outcome) => seen.push(kindOf(outcome), String(writtenBy(follower))));
    trio.clock.runUntil(() => seen.length === 3);
    expect(seen).to.deep.equal(['b notLeader', 'readable', 'a']);
  });

  it('refuses a read whose leader is gone, as lostLeadership', () => {
    const trio = new Trio();
    const leader = trio.leader();
    trio.passes = () => false;
    const seen: string[] = [];
    leader.driver.readIndex((outcome) => seen.push(kindOf(outcome)));
    trio.clock.runFor(1_500);
    expect(seen).to.deep.equal(['lostLeadership']);
  });

  it('reads by lease while a quorum answers, and only once everything committed is applied', () => {
    const trio = new Trio();
    const leader = trio.leader();
    trio.clock.runFor(300);
    expect(leader.driver.leaseRead()).to.equal(true);
    expect(trio.others(leader).map(({ driver }) => driver.leaseRead())).to.deep.equal([false, false]);
    trio.passes = () => false;
    trio.clock.runFor(960);
    expect(leader.driver.leaseRead()).to.equal(false);
  });

  it('transfers leadership on request, and reports the outcome', () => {
    const trio = new Trio();
    const leader = trio.leader();
    trio.clock.runFor(300);
    const seen: string[] = [];
    leader.driver.transfer(99, (outcome) => seen.push(kindOf(outcome)));
    trio.clock.runUntil(() => seen.length === 1);
    const startMs = trio.clock.now();
    leader.driver.transfer(undefined, (outcome) => seen.push(kindOf(outcome)));
    trio.clock.runUntil(() => trio.others(leader).some(({ driver }) => driver.status().ready));
    expect(trio.clock.now() - startMs).to.be.below(150);
    expect(seen).to.deep.equal(['noTarget', 'resigned']);

    const next = trio.leader();
    trio.clock.runFor(300);
    trio.passes = ({ type }) => type !== 'TimeoutNow';
    next.driver.transfer(undefined, (outcome) => seen.push(kindOf(outcome)));
    trio.clock.runFor(1_200);
    expect(seen.at(-1)).to.equal('aborted');
  });

  it('has no lease for the rest of a term in which a transfer failed, and confirms reads by rounds', () => {
    const trio = new Trio();
    const leader = trio.leader();
    const { term } = leader.driver.status();
    trio.clock.runFor(300);
    trio.passes = ({ type }) => type !== 'TimeoutNow';
    leader.driver.transfer(undefined, () => {});
    trio.clock.runFor(30_000);
    expect(leader.driver.status()).to.deep.include({ role: 'leader', term, ready: true });
    expect(leader.driver.leaseRead()).to.equal(false);
    const seen: string[] = [];
    leader.driver.readIndex((outcome) => seen.push(kindOf(outcome)));
    trio.clock.runUntil(() => seen.length === 1);
    expect(seen).to.deep.equal(['readable']);
  });

  it('steps down when a write hangs for longer than an election timeout, and leads again only after it', () => {
    let hangs = false;
    const delayed = new Map<number, number>();
    const trio = new Trio({ logDelayMs: (id) => (hangs && delayed.has(id) ? 4_000 : 1) });
    const leader = trio.leader();
    delayed.set(leader.id, 1);
    hangs = true;
    propose(leader, ['a']);
    trio.clock.runFor(20);
    hangs = false;
    trio.clock.runFor(1_200);
    expect(leader.driver.status().role).not.to.equal('leader');
    trio.clock.runFor(2_500);
    expect(trio.leader().id).not.to.equal(leader.id);
    expect(leader.driver.status().role).to.equal('follower');
    trio.clock.runFor(1_000);
    expect(writtenBy(leader)).to.deep.equal(['a']);
  });

  it('keeps everything it answered through a crash of all nodes', () => {
    const trio = new Trio();
    const leader = trio.leader();
    const outcomes = propose(leader, ['a', 'b', 'c']);
    trio.clock.runUntil(() => outcomes.length === 3);
    for (const id of [1, 2, 3]) trio.crash(id);
    for (const id of [1, 2, 3]) trio.start(id, [1, 2, 3]);
    const next = trio.leader();
    expect(writtenBy(next)).to.deep.equal(['a', 'b', 'c']);
  });

  it('stops while others continue, with its proposals answered', () => {
    const trio = new Trio();
    const leader = trio.leader();
    const outcomes = propose(leader, ['a']);
    let stopped = false;
    leader.driver.stop(() => {
      stopped = true;
    });
    trio.clock.runUntil(() => stopped);
    expect(outcomes).to.deep.equal(['a applied']);
    trio.members.delete(leader.id);
    expect(trio.leader().id).not.to.equal(leader.id);
  });
});

describe('Driver, membership', () => {
  it('reports the configuration in force at the start and at each change, and answers a change when it is committed', () => {
    const confs: ConfState[] = [];
    const trio = new Trio({ driver: { onConfiguration: (conf) => confs.push(conf) } });
    const leader = trio.leader();
    expect(confs).to.deep.equal([1, 2, 3].map(() => confOf([1, 2, 3])));
    const done = changed(leader, change([4, 'learner']));
    trio.clock.runUntil(() => done.length === 1);
    expect(done).to.deep.equal(['applied']);
    expect(leader.driver.consensus().conf).to.deep.equal(confOf([1, 2, 3], { learners: [4] }));
    const both = [changed(leader, change([5, 'learner'])), changed(leader, change([6, 'learner']))];
    trio.clock.runUntil(() => both.every(({ length }) => length === 1));
    expect(both).to.deep.equal([['applied'], ['confPending']]);
    expect(confs.length).to.be.above(6);
  });

  it('shows the newest committed configuration next to the one in force, and reports when it changes', () => {
    const committed: number[] = [];
    const trio = new Trio();
    const leader = trio.leader();
    const other = trio.others(leader)[0] ?? leader;
    trio.crash(other.id);
    trio.start(other.id, [1, 2, 3], { onConfCommitted: (_conf, index) => committed.push(index) });
    trio.passes = () => false;
    changed(leader, change([4, 'learner']));
    trio.clock.runFor(10);
    const before = leader.driver.consensus();
    expect(before.conf).to.deep.equal(confOf([1, 2, 3], { learners: [4] }));
    expect(before).to.deep.include({ committedConf: confOf([1, 2, 3]), committedConfIndex: 0 });
    expect(committed).to.deep.equal([]);
    trio.passes = () => true;
    trio.clock.runUntil(() => committed.length > 0);
    expect(committed).to.deep.equal([before.confIndex]);
    for (const { driver } of [leader, other]) {
      const { conf, confIndex, committedConf, committedConfIndex } = driver.consensus();
      expect({ committedConf, committedConfIndex }).to.deep.equal({ committedConf: conf, committedConfIndex: confIndex });
    }
  });

  it('promotes a learner that it may promote once a round of catching up was short', () => {
    const trio = new Trio({ driver: { promotes: (id) => id === 4 } });
    const leader = trio.leader();
    for (const id of [4, 5]) trio.start(id, []);
    const done = changed(leader, change([4, 'learner'], [5, 'learner']));
    trio.clock.runUntil(() => done.length === 1);
    trio.clock.runFor(1_000);
    expect(leader.driver.consensus().conf).to.deep.equal(confOf([1, 2, 3, 4], { learners: [5] }));
    expect(leader.driver.peers().map(({ id, learner }) => `${id} ${learner}`)).to.include('5 true');
  });

  it('does not promote a learner that is away', () => {
    const trio = new Trio({ driver: { promotes: () => true } });
    const leader = trio.leader();
    const done = changed(leader, change([4, 'learner']));
    trio.clock.runUntil(() => done.length === 1);
    trio.clock.runFor(3_000);
    expect(leader.driver.consensus().conf.learners).to.deep.equal([4]);
  });

  it('tells a node that the state records as removed, and that node remembers it', () => {
    const removed: number[] = [];
    const trio = new Trio({ driver: { removedAt: (id) => (id === 3 ? 7 : undefined) } });
    trio.crash(3);
    trio.start(3, [], { onRemoved: (atIndex) => removed.push(atIndex), removedAt: () => undefined });
    trio.clock.runFor(4_000);
    expect(removed).to.deep.equal([7]);
    expect(trio.member(3).driver.consensus().removed).to.equal(true);
    expect(trio.member(3).driver.status().term, 'it has ceased to campaign').to.be.at.most(1);
  });

  it('refuses configuration changes without ports to peers', () => {
    const trio = new Trio({ ids: [1] });
    const done = changed(trio.leader(), change([2, 'learner']));
    trio.clock.runUntil(() => done.length === 1);
    expect(done).to.deep.equal(['applied']);
  });
});

describe('Driver, snapshots', () => {
  const limits = { compactAfterEntries: 10, keepTrailingEntries: 2, keepForPeersEntries: 2 };

  function behind(options: ConstructorParameters<typeof Trio>[0] = {}) {
    const trio = new Trio({ driver: { limits }, ...options });
    const leader = trio.leader();
    const [late] = trio.others(leader);
    if (late === undefined) throw new Error('nobody else');
    trio.passes = cutOff(late.id);
    for (let i = 0; i < 40; i++) {
      propose(leader, [`n${i}`]);
      trio.clock.runFor(10);
    }
    trio.clock.runUntil(() => leader.disk.base.index > 20 && writtenBy(leader).length === 40);
    return { trio, leader, late };
  }

  it('bring a node up to date when the log no longer reaches back to it, and the log continues from there', () => {
    const { trio, leader, late } = behind();
    trio.passes = () => true;
    trio.clock.runUntil(() => writtenBy(late).length === 40, 200_000);
    expect(late.disk.base.index).to.be.above(20);
    const outcomes = propose(trio.leader(), ['after']);
    trio.clock.runUntil(() => outcomes.length === 1);
    trio.clock.runFor(500);
    expect(writtenBy(late).at(-1)).to.equal('after');
    expect(late.fatal).to.deep.equal([]);
    expect(leader.fatal).to.deep.equal([]);
    trio.crash(late.id);
    const again = trio.start(late.id, []);
    trio.clock.runFor(3_000);
    expect(writtenBy(again)).to.have.length(41);
    expect(again.fatal).to.deep.equal([]);
  });

  it('wait for writes under way before they are installed', () => {
    let slow = 0;
    const { trio, leader, late } = behind({ logDelayMs: (id) => (id === slow ? 300 : 1) });
    trio.holdsStreams = true;
    trio.passes = () => true;
    trio.clock.runUntil(() => trio.streams.length > 0, 200_000);
    slow = late.id;
    trio.clock.runFor(300);
    leader.driver.transfer(undefined, () => {});
    trio.clock.runUntil(() => late.writes > 0);
    for (const stream of trio.streams.splice(0)) stream();
    trio.holdsStreams = false;
    trio.clock.runUntil(() => writtenBy(late).length === 40, 200_000);
    expect(late.fatal).to.deep.equal([]);
    expect(late.disk.base.index).to.be.above(20);
  });

  it('keep the log from the offered index on for the peer while the stream lasts', () => {
    const { trio, leader, late } = behind({
      driver: { limits: { ...limits, keepForPeersEntries: 1_000 } },
    });
    trio.holdsStreams = true;
    trio.passes = () => true;
    trio.clock.runUntil(() => trio.streams.length > 0, 200_000);
    const offered = leader.driver.peers().find(({ id }) => id === late.id)?.pendingSnapshot ?? 0;
    expect(offered).to.be.above(0);
    for (let i = 0; i < 40; i++) {
      propose(leader, [`m${i}`]);
      trio.clock.runFor(10);
    }
    expect(leader.disk.base.index).to.be.at.most(offered);
    trio.holdsStreams = false;
    for (const stream of trio.streams.splice(0)) stream();
    trio.clock.runUntil(() => writtenBy(late).length === 80, 200_000);
  });
});
