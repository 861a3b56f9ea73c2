import { type ConfAt, ConfHistory } from '../confchange/conf-history.ts';
import { membersOf } from '../confchange/conf-state.ts';
import { invariant } from '../invariant.ts';
import { LogView } from '../log/log-view.ts';
import type { LogStart } from '../ports.ts';
import type { ConfState, Entry, LogIndex, NodeId, SnapshotMeta } from '../types.ts';
import { decodeConfState } from '../wire/conf-state.ts';
import { CommitIndex } from './commit-index.ts';
import { CommittedEntries } from './committed.ts';
import type { Observe } from './coverage-events.ts';
import type { CoreEvent } from './raft-core.ts';
import { Removal } from './removal.ts';
import { committedAtStart } from './start.ts';

export interface ReplicatedLogOptions {
  /** Last entry that the state machine holds durably. */
  readonly applied: LogIndex;
  /** Committed entries that are handed out at a time. */
  readonly committedBytesMax: number;
  /** Payload bytes of committed entries in memory from which on no more entries are taken in. */
  readonly memoryBytesMax: number;
  /** It was told in an earlier run that it is no member any more. */
  readonly removed: boolean;
  readonly observe: Observe;
}

/**
 * The replicated log as this node has it (Raft §5.3, §6, §7), whoever leads: its entries, the configurations among them, how
 * far it is committed and applied. What a leader does to its own log goes through `RaftState`, for its peers hear of it.
 */
export class ReplicatedLog {
  readonly view: LogView;
  readonly confs: ConfHistory;
  readonly toApply: CommittedEntries;
  readonly #id: NodeId;
  readonly #observe: Observe;
  readonly #commit: CommitIndex;
  readonly #removal: Removal;
  #applied: LogIndex;
  #appliesAhead = false;
  #hasRoom = true;
  readonly #memoryBytesMax: number;
  #events: CoreEvent[] = [];

  /** @throws LogDamage when entries are missing that were committed or applied */
  constructor(start: LogStart, { applied, committedBytesMax, memoryBytesMax, removed, observe }: ReplicatedLogOptions) {
    this.#memoryBytesMax = memoryBytesMax;
    this.#id = start.nodeId;
    this.#observe = observe;
    this.view = new LogView(start);
    this.confs = new ConfHistory(
      { index: start.base.confIndex, conf: start.base.conf },
      start.confEntries.map(({ index, data }) => ({ index, conf: decodeConfState(data) })),
    );
    this.#commit = new CommitIndex({ commit: committedAtStart(start, applied), hint: start.hardState.commit });
    this.#removal = new Removal(start.nodeId, { wasTold: removed });
    this.#applied = applied;
    this.toApply = new CommittedEntries(this.view, { applied, bytesMax: committedBytesMax });
    this.#events.push({ type: 'confChanged', ...this.confs.newest });
  }

  get commitIndex(): LogIndex {
    return this.#commit.value;
  }
  /** What may be stored as committed by now. */
  get commitOnDisk(): LogIndex {
    return this.#commit.onDisk(this.view.stableIndex);
  }
  /** Durable in the state machine. */
  get appliedIndex(): LogIndex {
    return this.#applied;
  }
  /**
   * Up to where committed entries may be applied in memory. Normally to the end of this node's stable log; where its disk stalls, a quorum's
   * disks are enough. The state machine's own disk never gets ahead of the stable log: see {@link applied}. What follows a snapshot waits until
   * that is in force: the state does not hold what comes before it.
   */
  get applicable(): LogIndex {
    const isAhead = this.#appliesAhead && !this.isInstalling;
    return isAhead ? this.commitIndex : Math.min(this.commitIndex, this.view.stableIndex);
  }
  get isInstalling(): boolean {
    return this.#commit.isInstalling;
  }
  get isRemoved(): boolean {
    return this.#removal.isInForce(this.confs.newest);
  }
  get hasNews(): boolean {
    return this.#commit.hasNewHint(this.view.stableIndex) || this.#events.length > 0;
  }

  /**
   * Whether this node has memory and disk for more entries. Of the memory, only what is committed counts: that drains as the state is
   * flushed, whereas an uncommitted end may need more entries to become committed.
   */
  get hasRoom(): boolean {
    return this.#hasRoom && (this.view.memoryBytes < this.#memoryBytesMax || this.#committedBytes < this.#memoryBytesMax);
  }

  setRoom(hasRoom: boolean): void {
    this.#hasRoom = hasRoom;
  }

  /** Entries of the leader that this log does not hold; the first takes the place of all from its index on. */
  takeIn(entries: readonly Entry[]): void {
    const first = entries[0];
    if (first !== undefined && first.index <= this.view.lastIndex) this.#truncate(first.index);
    for (const entry of entries) {
      this.view.push(entry);
      if (entry.type === 'conf') this.configure({ index: entry.index, conf: decodeConfState(entry.data) });
    }
  }

  /** The newest configuration in the log is in force, committed or not (thesis §4.1). */
  configure(conf: ConfAt): void {
    this.confs.append(conf);
    this.#events.push({ type: 'confChanged', ...conf });
  }

  /** Commits all up to `to`. Answers the configuration in force if it was committed by that. */
  commit(to: LogIndex): ConfState | undefined {
    invariant(to <= this.view.lastIndex, 'what is committed is in the log', { index: to, lastIndex: this.view.lastIndex });
    const from = this.commitIndex;
    this.#commit.advance(to);
    const committed = this.confs.asOf(to);
    if (committed.index > from) this.#events.push({ type: 'confCommitted', ...committed });
    this.#removal.committed(committed);
    const { index, conf } = this.confs.newest;
    if (index <= from || index > to) return undefined;
    const isMember = (confState: ConfState): boolean => membersOf(confState).has(this.#id);
    if (!isMember(conf) && isMember(this.confs.asOf(index - 1).conf)) this.noteRemoved(index);
    return conf;
  }

  noteRemoved(atIndex: LogIndex): void {
    this.#removal.note(atIndex);
    this.#events.push({ type: 'removedFromCluster', atIndex });
  }

  /** A snapshot takes the place of the log, and of what is being applied. */
  install(meta: SnapshotMeta): void {
    this.view.install(meta);
    this.confs.install({ index: meta.confIndex, conf: meta.conf });
    this.toApply.reset(meta.index);
    this.#commit.install(meta.index);
    this.#applied = meta.index;
    this.#events.push({ type: 'confChanged', ...this.confs.newest });
  }

  /** The snapshot is in force on the disk. */
  installed(): void {
    this.#commit.installed();
  }

  applyAhead(allowed: boolean): void {
    this.#appliesAhead = allowed;
  }

  /**
   * The state machine's disk holds everything up to `index`. A state that was ahead of the stable log would, after a crash, be a state that
   * the log cannot explain: the next start takes it for damage.
   */
  applied(index: LogIndex): void {
    if (index < this.view.baseIndex) return;
    const { handedOut } = this.toApply;
    const { stableIndex } = this.view;
    const facts = { from: this.#applied, to: index, handedOut, stableIndex };
    invariant(index >= this.#applied && index <= handedOut, 'applied ascends, within what was handed out', facts);
    invariant(index <= stableIndex, 'the state is never flushed ahead of the stable log', facts);
    this.#applied = index;
    this.view.release(index);
  }

  persisted(seq: number): void {
    this.view.persisted(seq);
    this.view.release(this.#applied);
  }

  /** The log begins after `base` from now on. */
  compacted(base: SnapshotMeta): void {
    invariant(base.index <= this.#applied, 'only applied entries are compacted', { base: base.index, applied: this.#applied });
    if (base.index <= this.view.baseIndex) return;
    this.view.compacted(base);
    this.confs.compact(base.index);
  }

  snapshotMeta(index: LogIndex): SnapshotMeta {
    const { conf, index: confIndex } = this.confs.asOf(index);
    return { index, term: this.view.termAt(index), conf, confIndex };
  }

  takeEvents(): readonly CoreEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  takeCommitHint(): { readonly commitHint?: LogIndex } {
    return this.#commit.takeHint(this.view.stableIndex);
  }

  /** Payload bytes of the entries that wait for nothing but this node's own disks. */
  get #committedBytes(): number {
    return this.view.bytesInMemory({ lo: this.view.memoryFirst, hi: this.commitIndex });
  }

  #truncate(index: LogIndex): void {
    if (this.view.truncate(index)) this.#observe('write acknowledgement clipped');
    const rolledBack = this.confs.truncate(index);
    if (rolledBack === 0) return;
    this.#events.push({ type: 'confChanged', ...this.confs.newest });
    this.#observe(rolledBack > 1 ? 'several configuration entries truncated' : 'configuration entry truncated');
  }
}
