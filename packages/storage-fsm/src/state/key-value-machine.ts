import { type Entry, invariant, type LogIndex, type StateMachine } from '@transitd/raft-core';
import { damaged } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { type FeatureLevel, type LevelRange, supportedLevels, UnsupportedLevel } from '../level/feature-levels.ts';
import { DigestSum } from '../store/digest.ts';
import { isLocal, positionOf, type ReplicationState } from '../store/replication-state.ts';
import { visiblePath } from '../store/spaces.ts';
import type { Changes, CommitResult, PathPage, RangePage, RangeQuery, StoredRecord } from '../store/store.ts';
import { Watchers } from '../store/watchers.ts';
import type { AppliedObserver } from './applied-entry.ts';
import { DigestHistory } from './digest-history.ts';
import { EntryApplier } from './entry-applier.ts';
import { type OpenStateOptions, openState, Records } from './records.ts';
import { type ReplicatedSnapshot, replicatedSnapshot } from './replicated-snapshot.ts';
import { ScopeDigest } from './scope-digest.ts';
import type { OpenDatabase } from './state-level.ts';
import { StateLoader } from './state-loader.ts';
import type { StateMeta } from './state-record.ts';
import type { StateSnapshot, StateStore } from './state-store.ts';

export interface KeyValueMachineOptions {
  /** The generation's state directory, used for nothing else. */
  readonly directory: string;
  /** Index up to which the log was compacted. A state older than that cannot be brought up to date. */
  readonly base: LogIndex;
  /** Called once, at the first error of the state store. Read errors count too: a node that cannot read its state must not serve. */
  readonly onFailure?: (error: Error) => void;
  /** By default, opens `level` on this machine's disk. */
  readonly openDatabase?: OpenDatabase;
  /** The feature levels under which entries may be applied, for tests; by default {@link supportedLevels}. */
  readonly levels?: LevelRange;
  /** For a recovery: how the replication record is read. */
  readonly decodeReplication?: OpenStateOptions['decodeReplication'];
}

/**
 * The replicated records. Every read sees an applied entry at once, from memory. A later flush writes the pending records to disk in one
 * synced batch, with the applied index and the digest (raft-core's two indexes, applied and flushed).
 */
export class KeyValueMachine implements StateMachine<CommitResult> {
  /** Index of the newest entry that was on disk when this was opened. */
  readonly flushedAtOpen: LogIndex;
  readonly #onFailure: (error: Error) => void;
  readonly #openDatabase: OpenDatabase | undefined;
  readonly #levels: LevelRange;
  readonly #records: Records;
  readonly #watchers = new Watchers();
  readonly #digests = new DigestHistory();
  readonly #scope = new ScopeDigest();
  readonly #applier: EntryApplier;
  #observer: AppliedObserver | undefined;
  #published: () => void = () => undefined;
  #flushed: LogIndex;
  #flushing: Promise<void> | undefined;

  private constructor(
    store: StateStore,
    {
      onFailure = () => undefined,
      openDatabase,
      levels = supportedLevels,
      decodeReplication,
    }: Omit<KeyValueMachineOptions, 'base' | 'directory'>,
  ) {
    const { appliedIndex, digest } = store.metaAtOpen;
    this.#onFailure = onFailure;
    this.#openDatabase = openDatabase;
    this.#levels = levels;
    this.#records = new Records(store, decodeReplication);
    const [watchers, scope] = [this.#watchers, this.#scope];
    this.#applier = new EntryApplier(store.metaAtOpen, { records: this.#records, watchers, scope, levels });
    this.#flushed = appliedIndex;
    this.flushedAtOpen = appliedIndex;
    this.#digests.restart(appliedIndex, digest);
  }

  /** @throws UnsupportedLevel; StorageDamaged, StorageInUse or StorageFailed, as {@link StateStore.open} does */
  static async open({ directory, base, ...options }: KeyValueMachineOptions): Promise<KeyValueMachine> {
    const store = await openState(directory, options.onFailure ?? (() => undefined), options);
    const { appliedIndex } = store.metaAtOpen;
    if (appliedIndex >= base) return new KeyValueMachine(store, options);
    await store.close();
    throw damaged(directory, `ends at index ${appliedIndex}, but the log has dropped its entries up to ${base}`);
  }

  /** Applied index, values written and digest of the applied state. */
  get applied(): StateMeta {
    return this.#applier.applied;
  }

  /** The feature level of the applied state: the one under which the next entry is applied. */
  get featureLevel(): FeatureLevel {
    return this.#records.level;
  }

  /**
   * Returns the state digest right after the entry at `index`, which is the same on every node. Undefined unless the index is one of the
   * newest 1,024 applied here, one of the newest 64 multiples of 4,096, or the index at which the current state was opened or installed.
   */
  digestAt(index: LogIndex): bigint | undefined {
    return this.#digests.at(index);
  }

  /** The state of disaster-recovery replication; undefined on a cluster that never took part in it. */
  get replication(): ReplicationState | undefined {
    return this.#records.replication;
  }

  /**
   * Returns the digest of the replicated records at a position: right after the entry with this service index on a primary, right after the
   * step that ended there on a secondary. Undefined unless it is one of the newest 1,024 positions, and {@link measureScope} has ended.
   */
  scopeDigestAt(index: LogIndex): bigint | undefined {
    return this.#scope.at(index);
  }

  /**
   * Reports the present state to the observer, and from now on every applied entry and every state that replaces the present one. There is
   * only one observer.
   * @param published - called whenever entries were applied, once the watchers know their changes
   */
  observe(observer: AppliedObserver, published: () => void = () => undefined): void {
    this.#observer = observer;
    this.#published = published;
    this.#applier.onEntry = (applied) => observer.entry(applied);
    this.#reportState();
  }

  #reportState(): void {
    const { replication } = this.#records;
    this.#observer?.state(replication && positionOf(replication, this.applied.appliedIndex));
  }

  /**
   * Returns the replicated records on disk as of one flush, with the position and the epochs of the same moment. Undefined if the cluster
   * took no part in replication then.
   */
  replicatedSnapshot(): ReplicatedSnapshot | undefined {
    return replicatedSnapshot(this.snapshot());
  }

  /** Computes the digest of the replicated records, so that {@link scopeDigestAt} can return it. Reads the whole state, page by page. */
  async measureScope(): Promise<void> {
    const sum = new DigestSum();
    const { spaces, replication } = this.#records;
    const take = this.#scope.measuring();
    for await (const { path: name, ...record } of this.#records.all()) {
      const path = visiblePath(spaces, name);
      if (path !== undefined && replication !== undefined && !isLocal(replication, path)) sum.add({ path, ...record });
    }
    take(sum.digest);
  }

  get flushedIndex(): LogIndex {
    return this.#flushed;
  }

  /** Approximate memory use of the writes that are not on disk, in bytes. Proposers should wait while this is large. */
  get pendingBytes(): number {
    return this.#records.pending.bytes;
  }

  /**
   * Applies one committed entry.
   * @throws InvariantViolation for an entry out of order or one that is not a command; every node decides the same
   * @throws UnsupportedLevel for an entry above or below the levels of this program
   * @throws StorageFailed, StorageDamaged when a read fails. The machine is not used after any of these.
   */
  apply(entry: Entry): CommitResult {
    const { index } = entry;
    invariant(index === this.applied.appliedIndex + 1, 'entries are applied in order without gaps', {
      appliedIndex: this.applied.appliedIndex,
      index,
    });
    failpoint('state.before_apply');
    const result = this.#applier.apply(entry);
    this.#digests.note(index, this.applied.digest);
    failpoint('state.after_apply');
    return result;
  }

  /** Calls the watchers, once for everything applied since the last call. */
  publish(): void {
    this.#watchers.publish();
    this.#published();
  }

  flush(done: (error: Error | undefined, flushed: LogIndex) => void): void {
    invariant(this.#flushing === undefined, 'one flush is in flight', { flushed: this.#flushed });
    const target = this.applied;
    const writes = this.#records.pending.capture();
    this.#flushing = this.#records.store.write(writes, target).then(
      () => {
        this.#flushing = undefined;
        this.#records.pending.dropFlushed(writes);
        this.#flushed = target.appliedIndex;
        done(undefined, target.appliedIndex);
      },
      (error: Error) => {
        this.#flushing = undefined;
        done(error, this.#flushed);
      },
    );
  }

  /** Returns a copy of the record as of all applied entries. Reads from memory or, on this thread, from LevelDB. */
  getSync(path: string): StoredRecord | undefined {
    if (path < ' ') return undefined; // names that are not paths begin with a control character
    const record = this.#records.at(path);
    return record && { value: Buffer.from(record.value), revision: record.revision };
  }

  /**
   * Returns one page as of the entries applied at the time of the call. More entries may be applied before it resolves: to cache the
   * result, watch the prefix first.
   * @throws TypeError for an invalid query
   */
  range(query: RangeQuery): Promise<RangePage> {
    return this.#records.range(query);
  }

  /** Returns one page of paths, as {@link range} does of records. */
  paths(query: RangeQuery): Promise<PathPage> {
    return this.#records.paths(query);
  }

  /** Name of the attempt, of a restore or of a whole state from a primary, that made this state; undefined if it was never replaced. */
  get restoredBy(): string | undefined {
    return this.#records.spaces.live;
  }

  /** Name of the restore attempt that is being staged, if any. */
  get restoring(): string | undefined {
    return this.#records.spaces.attempt?.id;
  }

  /**
   * Returns up to `limit` names of unreachable records, which a finished or abandoned restore has left. A `sweep` may delete them. May read
   * the whole state.
   */
  unreachableNames(limit: number): Promise<string[]> {
    return this.#records.unreachableNames(limit);
  }

  /** See {@link Store.watch}. Listeners run in {@link publish}. A listener that throws stops the node: its cache may be stale. */
  watch(prefix: string, listener: (changes: Changes) => void): () => void {
    return this.#watchers.add(prefix, listener);
  }

  /** Returns the state on disk, for a peer or a backup; it can be read while entries are applied and flushed. */
  snapshot(): StateSnapshot {
    return this.#records.store.snapshot();
  }

  /**
   * Returns the state as of all applied entries, flushed or not, to be written as a snapshot. The caller must not apply or flush while
   * reading it.
   */
  appliedState(): Pick<StateSnapshot, 'meta' | 'pages'> {
    return { meta: this.applied, pages: () => singly(this.#records.all()) };
  }

  /**
   * Computes the digest of the records on disk, page by page, and compares it with the stored digest. On a mismatch this node is damaged:
   * `onFailure` has been called, and all later reads and writes fail.
   * @throws StorageFailed when the disk fails
   */
  async checkDigest(): Promise<
    { readonly sound: true; readonly index: LogIndex; readonly digest: bigint } | { readonly sound: false }
  > {
    for (;;) {
      const store = this.#records.store;
      try {
        const meta = await store.checkDigest();
        return meta === undefined ? { sound: false } : { sound: true, index: meta.appliedIndex, digest: meta.digest };
      } catch (error) {
        if (store === this.#records.store) throw error; // otherwise another state has replaced this one in the meantime
      }
    }
  }

  /**
   * Opens another state and checks all of it, as at a start. The current state does not change. A state at a level that this program does
   * not support ends the node, because every other snapshot of the cluster has at least this level.
   * @throws as {@link open}
   */
  async openReplacement(directory: string): Promise<StateStore> {
    try {
      return await openState(directory, this.#onFailure, { openDatabase: this.#openDatabase, levels: this.#levels });
    } catch (error) {
      if (error instanceof UnsupportedLevel) this.#onFailure(error);
      throw error;
    }
  }

  /** Creates another state, to be filled and then opened; the current state does not change. @throws as {@link open} */
  createReplacement(directory: string): Promise<StateLoader> {
    return StateLoader.create(directory, this.#openDatabase);
  }

  /**
   * Replaces the state by a snapshot from the leader. Reads see the new state at once, and watchers are notified of `everything`. The
   * caller must not apply entries or have a flush in flight.
   * @returns a promise that resolves when the last scan of the old state has ended and it is closed
   */
  adopt(store: StateStore): Promise<void> {
    const { appliedIndex, digest } = store.metaAtOpen;
    invariant(this.#flushing === undefined, 'no flush is in flight while a state is replaced', { appliedIndex });
    invariant(appliedIndex > this.applied.appliedIndex, 'a state is replaced by a newer one', { appliedIndex });
    const old = this.#records.store;
    this.#records.replace(store);
    this.#applier.applied = store.metaAtOpen;
    this.#flushed = appliedIndex;
    this.#digests.restart(appliedIndex, digest);
    this.#scope.restart();
    this.#reportState();
    this.#watchers.note('everything');
    this.#watchers.publish();
    return old.closeAfterScans();
  }

  /** Waits for a flush in flight, writes nothing more and closes the state. */
  async close(): Promise<void> {
    await this.#flushing;
    await this.#records.store.close();
  }
}

async function* singly<T>(items: AsyncIterable<T>): AsyncGenerator<readonly T[]> {
  for await (const item of items) yield [item];
}
