import {
  type ConfState,
  type Entry,
  type LogIndex,
  type LogWrite,
  type Message,
  membersOf,
  type NodeId,
  type SnapshotMeta,
  type Status,
  type Term,
} from '@transitd/raft-core';
import { CommitRules } from './commit-rules.ts';
import type { Coverage } from './coverage.ts';
import { LogCopy, printOf } from './log-copy.ts';
import type { ObservedNode } from './observed-node.ts';
import type { Promises } from './promises.ts';
import { isQuorum, quorumsOverlap } from './quorums.ts';
import { holds } from './violation.ts';

/** Terms of a simulated run stay far below this, so (index, term) and (node, term) fit in one number. */
const TERMS = 2 ** 20;

/**
 * The rules that hold across nodes, checked incrementally after every event (Raft figure 3 and §5, §6; thesis §4). Everything noted here
 * stays: an entry that was committed once stays committed.
 */
export class Safety {
  readonly #nodes = new Map<NodeId, ObservedNode>();
  readonly #coverage: Coverage;
  readonly #commits = new CommitRules(this.#nodes);
  /** The leader of each term. */
  readonly #leaders = new Map<Term, NodeId>();
  #newestLeaderTerm: Term = 0;
  readonly #entries = new Map<number, { readonly print: number; readonly termBefore: Term }>();
  readonly #grants = new Map<number, NodeId>();
  readonly #digests: number[] = [];
  /** By leader and peer: the newest session in which the leader sent to it. */
  readonly #sessions = new Map<number, { readonly term: Term; readonly session: number }>();
  /** By node and leader: the rounds of that leader's newest term that have reached the node. */
  readonly #rounds = new Map<number, { readonly term: Term; readonly reached: Set<number> }>();

  constructor(coverage: Coverage, promises: Promises) {
    this.#coverage = coverage;
    this.promises = promises;
  }

  /** The promises by time that followers have made. */
  readonly promises: Promises;

  /** Highest index known to be committed on any node. */
  get commitIndex(): LogIndex {
    return this.#commits.commitIndex;
  }

  committedTerm(index: LogIndex): Term | undefined {
    return this.#commits.termAt(index);
  }

  /** Notes the start of an incarnation: its log is what is on its disk. */
  started(node: ObservedNode): void {
    this.#nodes.set(node.id, node);
    node.status = undefined;
    node.truncatedNow = false;
    node.superseded = [];
    node.install = 'none';
    node.commitChecked = 0;
    node.shadow = new LogCopy(node.disk.base);
    for (const entry of node.disk.entries) node.shadow.push(entry, printOf(entry));
  }

  /** Checks a snapshot that is about to replace this node's log (Raft §7: a log that holds the snapshot's last entry keeps its tail). */
  installs({ id, disk }: ObservedNode, { index, term }: SnapshotMeta): void {
    const isHeld = disk.entry(index)?.term === term;
    holds('a snapshot never replaces a log that contains it', !isHeld, () => ({
      id,
      index,
      term,
      last: disk.lastIndex,
    }));
  }

  installed(node: ObservedNode): void {
    node.install = 'inForce';
    node.shadow = new LogCopy(node.disk.base);
  }

  /** Checks a write that the core hands out. */
  wrote(node: ObservedNode, { entries }: LogWrite): void {
    const { shadow } = node;
    const [first] = entries;
    if (first === undefined) return;
    if (first.index <= shadow.lastIndex) this.#truncated(node, first.index);
    for (const entry of entries) {
      holds('log entries are contiguous', entry.index === shadow.lastIndex + 1, () => ({ id: node.id, index: entry.index }));
      const before = shadow.conf;
      const termBefore = shadow.termAt(entry.index - 1);
      const print = printOf(entry);
      shadow.push(entry, print);
      this.#matches(node, entry, { print, termBefore });
      if (entry.type === 'conf') this.#reconfigured(node, before, entry);
    }
  }

  #truncated(node: ObservedNode, from: LogIndex): void {
    const { status, shadow, id } = node;
    const commit = status?.commitIndex ?? 0;
    holds('no committed entry is truncated', from > commit, () => ({ id, from, commit }));
    node.truncatedNow = true;
    this.#coverage.met('log truncated');
    node.superseded.push({ from, to: shadow.lastIndex });
    shadow.truncate(from);
  }

  /** Log matching: an index and a term identify one entry, and one history before it. */
  #matches(node: ObservedNode, { index, term }: Entry, seen: { readonly print: number; readonly termBefore: Term }): void {
    const key = index * TERMS + term;
    const known = this.#entries.get(key);
    if (known === undefined) {
      this.#entries.set(key, seen);
      return;
    }
    const same = known.print === seen.print && (known.termBefore === seen.termBefore || node.shadow.baseIndex >= index - 1);
    holds('logs match where index and term agree', same, () => ({ id: node.id, index, term, known, seen }));
  }

  #reconfigured(node: ObservedNode, before: ConfState | undefined, { index }: Entry): void {
    const after = node.shadow.conf;
    if (before === undefined || after === undefined || before.voters.length === 0) return;
    holds('quorums of consecutive configurations overlap', quorumsOverlap(before, after), () => ({
      id: node.id,
      index,
      before: [before.voters, before.votersOutgoing],
      after: [after.voters, after.votersOutgoing],
    }));
    if (after.votersOutgoing.length > 0 && before.votersOutgoing.length === 0) this.#coverage.met('joint configuration entered');
    if (before.learners.some((id) => after.voters.includes(id))) this.#coverage.met('learner promoted');
    if (before.voters.some((id) => after.learners.includes(id) || after.learnersNext.includes(id))) {
      this.#coverage.met('voter demoted');
    }
  }

  /** Notes a message that reaches a node. */
  delivered(message: Message): void {
    if (message.type !== 'Append' && message.type !== 'Heartbeat') return;
    const { from, to, term, round } = message;
    const link = to * TERMS + from;
    const known = this.#rounds.get(link);
    if (known === undefined || known.term < term) this.#rounds.set(link, { term, reached: new Set([round]) });
    else if (known.term === term) known.reached.add(round);
  }

  /** Checks that an answer which counts in its term answers a message of that term: rounds and sessions begin again with each term. */
  #answersItsTerm({ id }: ObservedNode, message: Message): void {
    if ((message.type !== 'AppendResp' && message.type !== 'HeartbeatResp') || message.session === 0 || message.round === 0)
      return;
    const { to, term, round } = message;
    const known = this.#rounds.get(id * TERMS + to);
    const isOwn = known !== undefined && (known.term > term || (known.term === term && known.reached.has(round)));
    holds('an answer counts only in the term of the message that it answers', isOwn, () => ({ id, to, term, round }));
  }

  /** A node was told that another has applied `asked`, and everything up to `index`. */
  confirmed(asked: LogIndex, index: LogIndex): void {
    holds('no entry is confirmed by an answer to another question', index >= asked, () => ({ asked, index }));
  }

  /** Checks that the node's disk already has the state for which a message vouches (Raft §5.2, figure 2; the persistence contract). */
  sent(node: ObservedNode, message: Message): void {
    const { id, disk } = node;
    const { term, vote } = disk.hardState;
    if (message.type !== 'PreVote' && message.type !== 'Removed') {
      holds('no message leaves before its term is durable', term >= message.term, () => ({
        id,
        type: message.type,
        durable: term,
        term: message.term,
      }));
    }
    const announces = message.type === 'Append' || message.type === 'Commit' || message.type === 'Heartbeat';
    if (announces || message.type === 'SnapOffer') {
      this.#sessions.set(id * TERMS + message.to, { term: message.term, session: message.session });
    }
    if (announces) this.#commits.announced(node, message);
    if (message.type === 'Vote') {
      const own = term > message.term || vote === id;
      holds('a candidate asks for votes after its own vote is durable', own, () => ({ id, term, vote }));
      this.#granted(id, message.term, id);
      if (message.transfer) this.promises.transferred(id, message.term);
    }
    if (message.type === 'TimeoutNow') this.promises.released(message.term);
    if (message.type === 'VoteResp' && !message.reject) {
      const durable = term > message.forTerm || (term === message.forTerm && vote === message.to);
      holds('a vote is durable before it is sent', durable, () => ({ id, term, vote, forTerm: message.forTerm, to: message.to }));
      this.#granted(id, message.forTerm, message.to);
      this.promises.voted(id, message.to, message.forTerm);
    }
    this.#answersItsTerm(node, message);
    if (message.type === 'AppendResp' && message.ok) {
      const { match } = message;
      // An answer to the leader of an earlier term refers to an entry of that leader, which the log may have superseded since. If one sync
      // made both durable, the log may even be shorter by now. The leader that superseded it was elected without it, so no quorum has it.
      const isOld = message.term < (node.status?.term ?? 0);
      const isSuperseded = node.superseded.some(({ from, to }) => from <= match && match <= to);
      const durable = isOld ? disk.lastIndex >= match || isSuperseded : node.stored(match, node.shadow.termAt(match));
      holds('only durable entries are acknowledged', durable, () => ({ id, match, last: disk.lastIndex }));
    }
    if (message.type === 'SnapResult' && message.ok) {
      holds('only an installed snapshot is acknowledged', disk.lastIndex >= message.index, () => ({ id, index: message.index }));
    }
  }

  /** Returns whether this answers a message that the leader, in its current term, sent before the peer left and came back. */
  isOfEarlierSession({ id, status }: ObservedNode, { type, from, term, session }: Message): boolean {
    if (type !== 'AppendResp' && type !== 'HeartbeatResp' && type !== 'SnapResult') return false;
    if (status?.role !== 'leader' || status.term !== term) return false;
    return session < this.#sessionOf(id, from, term);
  }

  #sessionOf(leader: NodeId, peer: NodeId, term: Term): number {
    const newest = this.#sessions.get(leader * TERMS + peer);
    return newest?.term === term ? newest.session : 0;
  }

  ignored({ from, session }: Message, before: LogIndex | undefined, after: LogIndex | undefined): void {
    holds('an answer of an earlier session does not count', before === after, () => ({ from, session, before, after }));
  }

  #granted(id: NodeId, term: Term, to: NodeId): void {
    const key = id * TERMS + term;
    const before = this.#grants.get(key);
    holds('a node votes once in a term', before === undefined || before === to, () => ({ id, term, to, before }));
    this.#grants.set(key, to);
  }

  /** Checks a lease read: no node can have been elected after this leader. */
  readByLease({ id, status, shadow }: ObservedNode, { knowsPromises }: { readonly knowsPromises: boolean }): void {
    const term = status?.term ?? 0;
    const newest = this.#newestLeaderTerm;
    holds('no other node is elected while a lease holds', newest <= term, () => ({ id, term, newest }));
    const { promises } = this;
    holds('a leader that told a node to campaign has no lease', !promises.isReleased(term), () => ({ id, term }));
    if (!knowsPromises || shadow.conf === undefined) return;
    const isBound = (voter: NodeId): boolean => voter === id || promises.isBound(voter, term);
    const { voters, votersOutgoing } = shadow.conf;
    holds('a lease rests on a quorum that votes for no other node', isQuorum(shadow.conf, isBound), () => ({
      id,
      term,
      bound: [voters.filter(isBound), votersOutgoing.filter(isBound)],
      voters: [voters, votersOutgoing],
    }));
  }

  /**
   * Checks that the core counts only durable entries as durably applied, and that the log keeps all others. `flushed`: the last entry that
   * the state holds durably.
   */
  flushed({ id, install, disk }: ObservedNode, { appliedIndex, baseIndex }: Status, flushed: LogIndex): void {
    if (install === 'awaited') return;
    const facts = () => ({ id, appliedIndex, baseIndex, flushed, last: disk.lastIndex });
    holds('only flushed entries count as durably applied', appliedIndex <= flushed, facts);
    holds('the log deletes only flushed entries', baseIndex <= flushed, facts);
    holds('the state on disk is never ahead of the log on disk', flushed <= disk.lastIndex, facts);
  }

  /** Checks that nothing else changes the state while a snapshot replaces it. */
  installsAlone(id: NodeId, isFlushing: boolean): void {
    holds('a snapshot is not installed during a flush', !isFlushing, () => ({ id }));
  }

  /** Returns whether a node has a leader, perhaps itself, and a configuration without `from`. */
  isLedWithout({ leader, conf }: Status, from: NodeId): boolean {
    return leader !== 0 && !membersOf(conf).has(from);
  }

  /** Checks a leader, or a follower of one, that has processed an answer of a later term from outside of its configuration. */
  answeredByNonMember(before: Status, after: Status, from: NodeId): void {
    this.#coverage.met('later term from a non-member ignored');
    const isKept = after.leader === before.leader && after.term === before.term;
    holds('an answer of a non-member ends no leadership', isKept, () => ({ from, term: before.term, now: after.term }));
  }

  /** Notes that a node applied an entry, with the digest of its whole history up to it. */
  applied(id: NodeId, index: LogIndex, digest: number): void {
    const known = this.#digests[index];
    holds('all nodes apply the same entries', known === undefined || known === digest, () => ({ id, index }));
    this.#digests[index] = digest;
  }

  /** Checks a node after each of its events. */
  observed(node: ObservedNode, status: Status): void {
    const before = node.status;
    node.status = status;
    if (node.truncatedNow) {
      node.truncatedNow = false;
      const led = before?.role === 'leader' && status.role === 'leader' && before.term === status.term;
      holds('a leader never changes its own log', !led, () => ({ id: node.id, term: status.term }));
    }
    if (before !== undefined && status.baseIndex > before.baseIndex) {
      // A snapshot raises the base above the commit index, a compaction never does.
      if (status.baseIndex > before.commitIndex) node.install = 'awaited';
      else this.#coverage.met('log compacted');
    }
    if (node.install !== 'awaited' && status.stableIndex !== before?.stableIndex) {
      const { stableIndex } = status;
      const stored = node.stored(stableIndex, node.shadow.termAt(stableIndex));
      holds('entries that a node treats as stable are on its disk', stored, () => ({
        id: node.id,
        stableIndex,
        last: node.disk.lastIndex,
      }));
    }
    if (
      before !== undefined &&
      node.commitChecked === status.commitIndex &&
      before.role === status.role &&
      before.term === status.term &&
      before.confIndex === status.confIndex
    ) {
      return;
    }
    const { id } = node;
    if (before !== undefined) {
      holds('the term never falls', status.term >= before.term, () => ({ id, from: before.term, to: status.term }));
      const rises = status.commitIndex >= before.commitIndex;
      holds('the commit index never falls', rises, () => ({ id, from: before.commitIndex, to: status.commitIndex }));
    }
    if (status.role === 'leader') this.#leads(node, status, before);
    if (node.install === 'inForce' && node.shadow.lastIndex >= status.lastIndex) node.install = 'none';
    const comesLater = node.install === 'inForce' && status.commitIndex > node.shadow.lastIndex;
    if (node.install !== 'awaited' && !comesLater) this.#commits.check(node, status, before);
  }

  #leads(node: ObservedNode, status: Status, before: Status | undefined): void {
    const { id, shadow } = node;
    const { term } = status;
    const leader = this.#leaders.get(term);
    holds('a term has one leader', leader === undefined || leader === id, () => ({ term, leader, id }));
    if (leader === undefined) {
      this.#leaders.set(term, id);
      const { hardState } = node.disk;
      const votedForItself = hardState.term === term && hardState.vote === id;
      const voted = (voter: NodeId): boolean => (voter === id ? votedForItself : this.#grants.get(voter * TERMS + term) === id);
      const elected = shadow.conf !== undefined && isQuorum(shadow.conf, voted);
      holds('a leader has the votes of a quorum of its configuration', elected, () => ({ id, term, conf: shadow.conf }));
      if (term > this.#newestLeaderTerm && this.#newestLeaderTerm > 0) this.#coverage.met('leader changed');
      this.#newestLeaderTerm = Math.max(this.#newestLeaderTerm, term);
      this.#commits.checkCompleteness(node, term);
      this.promises.elected(id, term, (before ?? status).committedConf);
    }
    // §6, thesis §4.1: one change at a time, and none before the term's first commit.
    const newest = shadow.confs.at(-1);
    const earlier = shadow.confs.at(-2);
    if (newest === undefined || newest.term !== term || newest.index === before?.confIndex || earlier === undefined) return;
    const { commitIndex, termStartIndex = 0 } = status;
    const facts = () => ({ id, newest: newest.index, earlier: earlier.index, commitIndex, termStartIndex });
    holds('a leader changes the configuration after the last change is committed', earlier.index <= commitIndex, facts);
    holds('a leader changes the configuration after its term has a committed entry', termStartIndex <= commitIndex, facts);
  }
}
