import { ConfHistory } from '../confchange/conf-history.ts';
import { invariant } from '../invariant.ts';
import { LogDamage } from '../log/log-damage.ts';
import { LogView } from '../log/log-view.ts';
import type { LogStart } from '../ports.ts';
import type { Entry, HardState, LogIndex, NodeId, Role, SnapshotMeta, Term } from '../types.ts';
import { decodeConfState } from '../wire/conf-state.ts';
import { CommittedEntries } from './committed.ts';
import { requireSoleVoter } from './election.ts';
import type { CoreRefusal, ProposeResult, RaftCore, Ready, Status } from './raft-core.ts';
import { ReadIndexQueue } from './read-index.ts';
import { UncommittedBytes } from './uncommitted.ts';

export interface RaftLimits {
  /** Payload bytes accepted and not yet committed. */
  readonly uncommittedBytesMax: number;
  /** Payload bytes of one entry. */
  readonly entryBytesMax: number;
  /** Payload bytes of the committed entries of one `Ready`. */
  readonly committedBytesMax: number;
}

export const raftLimits: RaftLimits = {
  uncommittedBytesMax: 64 * 2 ** 20,
  entryBytesMax: 8 * 2 ** 20,
  committedBytesMax: 2 ** 20,
};

const NOTHING = new Uint8Array(0);

/** The core of a node that is its cluster's only member. The one place where a role, a term or the commit index changes. */
export class Raft implements RaftCore {
  readonly #id: NodeId;
  readonly #limits: RaftLimits;
  readonly #log: LogView;
  readonly #confs: ConfHistory;
  readonly #toApply: CommittedEntries;
  readonly #reads = new ReadIndexQueue();
  readonly #uncommitted: UncommittedBytes;

  #role: Role = 'follower';
  #leader: NodeId = 0;
  #term: Term;
  #vote: NodeId;
  /** Term or vote changed since the last batch. */
  #hardStateChanged = false;
  /** The batch that made this candidate's term and self-vote durable. */
  #ballotSeq: number | undefined;
  #termStart: LogIndex = 0;

  #commit: LogIndex;
  #commitHint: LogIndex;
  #applied: LogIndex;
  #seq = 0;
  #nowMs = Number.NEGATIVE_INFINITY;

  /**
   * @param applied - last entry that the state machine holds durably
   * @throws LogDamage when entries are missing that were committed or applied
   */
  constructor(start: LogStart, { applied, limits }: { readonly applied: LogIndex; readonly limits: RaftLimits }) {
    this.#id = start.nodeId;
    this.#limits = limits;
    this.#log = new LogView(start);
    this.#confs = new ConfHistory(
      { index: start.base.confIndex, conf: start.base.conf },
      start.confEntries.map(({ index, data }) => ({ index, conf: decodeConfState(data) })),
    );
    requireSoleVoter(this.#confs, { id: this.#id, lastIndex: start.lastIndex });

    const { term, vote, commit } = start.hardState;
    this.#term = term;
    this.#vote = vote;
    this.#applied = applied;
    this.#commitHint = commit;
    // The stored commit index is a hint and may be old; what was applied or compacted was certainly committed.
    this.#commit = Math.max(commit, applied, start.base.index);
    refuseDamage({ ...start, commit: this.#commit, applied });
    this.#toApply = new CommittedEntries(this.#log, { applied, bytesMax: limits.committedBytesMax });
    this.#uncommitted = new UncommittedBytes(limits.uncommittedBytesMax);
  }

  tick(nowMs: number): void {
    invariant(nowMs >= this.#nowMs, 'time never falls', { from: this.#nowMs, to: nowMs });
    this.#nowMs = nowMs;
    if (this.#role === 'follower') this.#becomeCandidate();
  }

  propose(data: Uint8Array): ProposeResult {
    const reason = this.#refusal();
    if (reason !== undefined) return { accepted: false, reason };
    if (data.length > this.#limits.entryBytesMax) return { accepted: false, reason: 'tooLarge' };
    if (!this.#uncommitted.add(data.length)) return { accepted: false, reason: 'busy' };
    const { index, term } = this.#log.append({ term: this.#term, type: 'normal', data });
    return { accepted: true, index, term };
  }

  readIndex(ctx: number): CoreRefusal | undefined {
    const reason = this.#refusal();
    if (reason !== undefined) return reason;
    this.#reads.ask(ctx, { commitIndex: this.#commit, ownTermCommitted: this.#commit >= this.#termStart });
    return undefined;
  }

  hasReady(): boolean {
    if (this.#role === 'faulty') return false;
    return (
      this.#hardStateChanged ||
      this.#commit > this.#commitHint ||
      this.#log.hasUnwritten ||
      this.#reads.hasResults ||
      this.#toApply.hasMore(this.#commit)
    );
  }

  ready(): Ready {
    invariant(this.hasReady(), 'a batch of effects is taken when there is one', { role: this.#role });
    this.#seq += 1;
    return {
      seq: this.#seq,
      ...this.#takeCommitHint(),
      ...this.#takeHardState(),
      entries: this.#log.takeUnwritten(this.#seq),
      ...this.#toApply.take(this.#commit),
      reads: this.#reads.take(),
    };
  }

  persisted(seq: number): void {
    invariant(seq <= this.#seq, 'only a batch that was handed out is persisted', { seq, newest: this.#seq });
    this.#log.persisted(seq);
    // §5.2: the self-vote counts once it is on disk. Before that, a crash could have this node campaign twice in one term.
    if (this.#role === 'candidate' && this.#ballotSeq !== undefined && seq >= this.#ballotSeq) this.#becomeLeader();
    this.#advanceCommit();
    this.#log.release(this.#applied);
  }

  applied(index: LogIndex): void {
    const facts = { from: this.#applied, to: index, handedOut: this.#toApply.handedOut };
    invariant(index >= this.#applied && index <= this.#toApply.handedOut, 'applied ascends, within what was handed out', facts);
    this.#applied = index;
    this.#log.release(index);
  }

  logRead(entries: readonly Entry[]): void {
    this.#toApply.logRead(entries);
  }

  compacted(base: SnapshotMeta): void {
    invariant(base.index <= this.#applied, 'only applied entries are compacted', { base: base.index, applied: this.#applied });
    this.#log.compacted(base);
    this.#confs.compact(base.index);
  }

  storageFailed(): void {
    this.#role = 'faulty';
    this.#leader = 0;
    this.#reads.clear();
  }

  snapshotMeta(index: LogIndex): SnapshotMeta {
    const { conf, index: confIndex } = this.#confs.asOf(index);
    return { index, term: this.#log.termAt(index), conf, confIndex };
  }

  status(): Status {
    return {
      role: this.#role,
      term: this.#term,
      leader: this.#leader,
      baseIndex: this.#log.baseIndex,
      lastIndex: this.#log.lastIndex,
      stableIndex: this.#log.stableIndex,
      commitIndex: this.#commit,
      appliedIndex: this.#applied,
      ...(this.#role === 'leader' ? { termStartIndex: this.#termStart } : {}),
    };
  }

  checkInvariants(): void {
    this.#log.checkInvariants();
    const status = this.status();
    const { baseIndex, appliedIndex, stableIndex, commitIndex, lastIndex } = status;
    invariant(
      baseIndex <= appliedIndex && appliedIndex <= this.#toApply.handedOut && this.#toApply.handedOut <= commitIndex,
      'base <= applied <= handed out <= commit',
      { ...status, handedOut: this.#toApply.handedOut },
    );
    // A lone voter's quorum is its own disk.
    invariant(commitIndex <= stableIndex && stableIndex <= lastIndex, 'commit <= stable <= last', { ...status });
    invariant(this.#log.lastTerm <= this.#term, 'no entry is of a later term', { ...status, lastTerm: this.#log.lastTerm });
    if (this.#role !== 'leader') return;
    invariant(this.#vote === this.#id && this.#leader === this.#id, 'a lone leader voted for itself', { vote: this.#vote });
    invariant(this.#log.lastTerm === this.#term, 'a leader has an entry of its term', { ...status });
  }

  #refusal(): CoreRefusal | undefined {
    if (this.#role === 'faulty') return 'faulty';
    return this.#role === 'leader' ? undefined : 'notLeader';
  }

  #becomeCandidate(): void {
    this.#role = 'candidate';
    this.#term += 1;
    invariant(Number.isSafeInteger(this.#term), 'a term is a safe integer', { term: this.#term });
    this.#vote = this.#id;
    this.#hardStateChanged = true;
  }

  #becomeLeader(): void {
    this.#role = 'leader';
    this.#leader = this.#id;
    this.#uncommitted.clear();
    this.#reads.clear();
    // §5.4.2: entries of earlier terms commit only below one of this term, so the term opens with one that says nothing.
    this.#termStart = this.#log.append({ term: this.#term, type: 'noop', data: NOTHING }).index;
  }

  /** §5.3, §5.4.2: what a quorum, here this node's own disk, holds is committed, if it is of this term. */
  #advanceCommit(): void {
    const from = this.#commit;
    const to = this.#log.stableIndex;
    if (this.#role !== 'leader' || to <= from || this.#log.termAt(to) !== this.#term) return;
    this.#commit = to;
    this.#uncommitted.committed(this.#log.bytesInMemory({ lo: from + 1, hi: to }));
    this.#reads.ownTermCommitted(to);
  }

  #takeCommitHint(): { readonly commitHint?: LogIndex } {
    if (this.#commit <= this.#commitHint) return {};
    this.#commitHint = this.#commit;
    return { commitHint: this.#commit };
  }

  #takeHardState(): { readonly hardState?: HardState } {
    if (!this.#hardStateChanged) return {};
    this.#hardStateChanged = false;
    this.#ballotSeq = this.#seq;
    return { hardState: { term: this.#term, vote: this.#vote, commit: this.#commit } };
  }
}

function refuseDamage(log: {
  readonly hardState: HardState;
  readonly base: SnapshotMeta;
  readonly lastIndex: LogIndex;
  readonly terms: LogStart['terms'];
  readonly commit: LogIndex;
  readonly applied: LogIndex;
}): void {
  if (log.applied < log.base.index) {
    throw new LogDamage(`The state machine ends at entry ${log.applied} but the log begins after entry ${log.base.index}.`);
  }
  if (log.commit > log.lastIndex) {
    throw new LogDamage(`The log ends at entry ${log.lastIndex} but entry ${log.commit} was committed: it has lost its end.`);
  }
  const lastTerm = log.terms.at(-1)?.term ?? log.base.term;
  if (log.hardState.term < lastTerm) {
    throw new LogDamage(`The stored term ${log.hardState.term} is older than the log's last entry, of term ${lastTerm}.`);
  }
}
