import { type ConfAt, ConfHistory } from '../../confchange/conf-history.ts';
import { membersOf } from '../../confchange/conf-state.ts';
import { Removal } from '../../confchange/removal.ts';
import { invariant } from '../../invariant.ts';
import { LogView } from '../../log/log-view.ts';
import type { LogStart } from '../../ports.ts';
import type { ConfState, Entry, LogIndex, NodeId, SnapshotMeta } from '../../types.ts';
import { decodeConfState } from '../../wire/conf-state.ts';
import type { Observe } from '../contract/coverage-events.ts';
import type { CoreEvent } from '../contract/raft-core.ts';
import { CommitIndex } from './commit-index.ts';
import { CommittedEntries } from './committed.ts';
import { committedAtStart } from './start.ts';

export interface ReplicatedLogOptions {
  /** The last entry that the state machine holds durably. */
  readonly applied: LogIndex;
  /** Limit of payload bytes of committed entries handed out at a time. */
  readonly committedBytesMax: number;
  /** Limit of payload bytes of committed entries in memory; above it, no more entries are accepted. */
  readonly memoryBytesMax: number;
  /** An earlier incarnation was told that this node is no longer a member. */
  readonly removed: boolean;
  readonly observe: Observe;
}

/**
 * The replicated log of this node (Raft §5.3, §6, §7), whatever its role: its entries, the configurations among them, and how far it is
 * committed and applied. A leader changes its own log through `RaftState`, because its peers must be sent the changes.
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

  /** @throws LogDamage if committed or applied entries are missing */
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
  /** The commit index that may be stored now. */
  get commitOnDisk(): LogIndex {
    return this.#commit.onDisk(this.view.stableIndex);
  }
  /** Index of the last entry that is durable in the state machine. */
  get appliedIndex(): LogIndex {
    return this.#applied;
  }
  /**
   * The last committed entry that may be applied in memory. Normally that is limited by this node's stable log; while its disk stalls, a
   * quorum's disks are enough. The state on disk never gets ahead of the stable log: see {@link applied}. Entries that follow a snapshot
   * wait until it is installed, because the state lacks everything before them.
   */
  get applyLimit(): LogIndex {
    const isAhead = this.#appliesAhead && !this.isInstalling;
    return isAhead ? this.commitIndex : Math.min(this.commitIndex, this.view.stableIndex);
  }
  get isInstalling(): boolean {
    return this.#commit.isInstalling;
  }
  get isRemoved(): boolean {
    return this.#removal.isInForce(this.confs.newest);
  }
  get hasChanges(): boolean {
    return this.#commit.hasNewHint(this.view.stableIndex) || this.#events.length > 0;
  }

  /**
   * Whether this node has memory and disk for more entries. Only committed entries count against the memory limit, because flushing the
   * state releases them. Uncommitted entries may need further entries before they commit.
   */
  get hasRoom(): boolean {
    return this.#hasRoom && (this.view.memoryBytes < this.#memoryBytesMax || this.#committedBytes < this.#memoryBytesMax);
  }

  setRoom(hasRoom: boolean): void {
    this.#hasRoom = hasRoom;
  }

  /** Takes entries of the leader that this log lacks; the first one supersedes everything from its index on. */
  appendFromLeader(entries: readonly Entry[]): void {
    const first = entries[0];
    if (first !== undefined && first.index <= this.view.lastIndex) this.#truncate(first.index);
    for (const entry of entries) {
      this.view.push(entry);
      if (entry.type === 'conf') this.configure({ index: entry.index, conf: decodeConfState(entry.data) });
    }
  }

  /** Puts a configuration in force: always the newest one in the log, committed or not (thesis §4.1). */
  configure(conf: ConfAt): void {
    this.confs.append(conf);
    this.#events.push({ type: 'confChanged', ...conf });
  }

  /** Commits everything up to `to`. Returns the configuration in force if this call commits its entry. */
  commit(to: LogIndex): ConfState | undefined {
    invariant(to <= this.view.lastIndex, 'committed entries are in the log', { index: to, lastIndex: this.view.lastIndex });
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

  /** Replaces the log with a snapshot, including the entries that are being applied. */
  install(meta: SnapshotMeta): void {
    this.view.install(meta);
    this.confs.install({ index: meta.confIndex, conf: meta.conf });
    this.toApply.reset(meta.index);
    this.#commit.install(meta.index);
    this.#applied = meta.index;
    this.#events.push({ type: 'confChanged', ...this.confs.newest });
  }

  /** Notes that the snapshot is installed on disk. */
  installed(): void {
    this.#commit.installed();
  }

  applyAhead(allowed: boolean): void {
    this.#appliesAhead = allowed;
  }

  /**
   * Notes that the state machine holds everything up to `index` on disk. If the state were ahead of the stable log, a crash could leave a
   * state that the log does not explain, and the next start would report damage.
   */
  applied(index: LogIndex): void {
    if (index < this.view.baseIndex) return;
    const { handedOut } = this.toApply;
    const { stableIndex } = this.view;
    const facts = { from: this.#applied, to: index, handedOut, stableIndex };
    invariant(index >= this.#applied && index <= handedOut, 'the applied index ascends, up to the entries handed out', facts);
    invariant(index <= stableIndex, 'the state is never flushed ahead of the stable log', facts);
    this.#applied = index;
    this.view.release(index);
  }

  persisted(seq: number): void {
    this.view.persisted(seq);
    this.view.release(this.#applied);
  }

  /** Lets the log begin after `base`. */
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

  /** Returns the payload bytes of the entries that wait only for this node's own disks. */
  get #committedBytes(): number {
    return this.view.bytesInMemory({ lo: this.view.memoryFirst, hi: this.commitIndex });
  }

  #truncate(index: LogIndex): void {
    if (this.view.truncate(index)) this.#observe('acknowledgement of a superseded write limited');
    const rolledBack = this.confs.truncate(index);
    if (rolledBack === 0) return;
    this.#events.push({ type: 'confChanged', ...this.confs.newest });
    this.#observe(rolledBack > 1 ? 'several configuration entries truncated' : 'configuration entry truncated');
  }
}
