import { CodecError, type Entry, invariant, type LogIndex, type StateMachine } from '@transitd/raft-core';
import { damaged } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { decodeTransaction } from '../store/codec.ts';
import { addToDigest, recordDigest, removeFromDigest } from '../store/digest.ts';
import { applyRestoreStep, type RestoreStep } from '../store/restore-step.ts';
import { encodeSpaces, nameOf, spacesName } from '../store/spaces.ts';
import type { Change, Changes, CommitResult, PathPage, RangePage, RangeQuery, StoredRecord } from '../store/store.ts';
import { applyTransaction, type Transaction, type Write } from '../store/transaction.ts';
import { Watchers } from '../store/watchers.ts';
import { DigestHistory } from './digest-history.ts';
import { openState, Records } from './records.ts';
import type { OpenDatabase } from './state-level.ts';
import { StateLoader } from './state-loader.ts';
import type { StateMeta } from './state-record.ts';
import type { StateSnapshot, StateStore } from './state-store.ts';

export interface KeyValueMachineOptions {
  /** The generation's state directory, used for nothing else. */
  readonly directory: string;
  /** Index up to which the log was compacted: an older state cannot be brought up to date. */
  readonly base: LogIndex;
  /** Called once, at the first error of the state store, including read errors: a node that cannot read its state must not serve. */
  readonly onFailure?: (error: Error) => void;
  /** By default, opens `level` on this machine's disk. */
  readonly openDatabase?: OpenDatabase;
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
  readonly #records: Records;
  readonly #watchers = new Watchers();
  readonly #digests = new DigestHistory();
  #applied: StateMeta;
  #flushed: LogIndex;
  #flushing: Promise<void> | undefined;

  private constructor(store: StateStore, onFailure: (error: Error) => void, openDatabase: OpenDatabase | undefined) {
    const { appliedIndex, digest } = store.metaAtOpen;
    this.#onFailure = onFailure;
    this.#openDatabase = openDatabase;
    this.#records = new Records(store);
    this.#applied = store.metaAtOpen;
    this.#flushed = appliedIndex;
    this.flushedAtOpen = appliedIndex;
    this.#digests.restart(appliedIndex, digest);
  }

  /** @throws StorageDamaged, StorageInUse or StorageFailed, as {@link StateStore.open} does */
  static async open({
    directory,
    base,
    onFailure = () => undefined,
    openDatabase,
  }: KeyValueMachineOptions): Promise<KeyValueMachine> {
    const store = await openState(directory, onFailure, openDatabase);
    const { appliedIndex } = store.metaAtOpen;
    if (appliedIndex >= base) return new KeyValueMachine(store, onFailure, openDatabase);
    await store.close();
    throw damaged(directory, `ends at index ${appliedIndex}, but the log has dropped its entries up to ${base}`);
  }

  /** Applied index, values written and digest of the applied state. */
  get applied(): StateMeta {
    return this.#applied;
  }

  /**
   * Returns the state digest right after the entry at `index`, which is the same on every node. Undefined unless the index is one of the
   * newest 1,024 applied here, one of the newest 64 multiples of 4,096, or the index at which the current state was opened or installed.
   */
  digestAt(index: LogIndex): bigint | undefined {
    return this.#digests.at(index);
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
   * @throws InvariantViolation for an entry out of order or one that is not a transaction; every node decides the same
   * @throws StorageFailed, StorageDamaged when a read fails. The machine is not used after any of these.
   */
  apply(entry: Entry): CommitResult {
    const { index } = entry;
    invariant(index === this.#applied.appliedIndex + 1, 'entries are applied in order without gaps', {
      appliedIndex: this.#applied.appliedIndex,
      index,
    });
    failpoint('state.before_apply');
    const result = entry.type === 'normal' ? this.#applyTransaction(decodeEntry(entry), index) : this.#applyNothing(index);
    this.#digests.note(index, this.#applied.digest);
    failpoint('state.after_apply');
    return result;
  }

  flush(done: (error: Error | undefined, flushed: LogIndex) => void): void {
    invariant(this.#flushing === undefined, 'one flush is in flight', { flushed: this.#flushed });
    const target = this.#applied;
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

  /** Returns a copy of the record as of all applied entries. Reads memory, then `level` on this thread. */
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

  /** Name of the restore attempt that is being staged, if any. */
  get restoring(): string | undefined {
    return this.#records.spaces.attempt?.id;
  }

  /**
   * Returns up to `limit` names of unreachable records, left by a restore that replaced the state or that was abandoned: a `sweep` may
   * delete them. May read the whole state.
   */
  unreachableNames(limit: number): Promise<string[]> {
    return this.#records.unreachableNames(limit);
  }

  /** See {@link Store.watch}. A listener that throws stops the node: its cache may be stale. */
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
    return { meta: this.#applied, pages: () => singly(this.#records.all()) };
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
        if (store === this.#records.store) throw error; // otherwise another state has replaced this one meanwhile
      }
    }
  }

  /** Opens another state and checks all of it, as at a start; the current state does not change. @throws as {@link open} */
  openReplacement(directory: string): Promise<StateStore> {
    return openState(directory, this.#onFailure, this.#openDatabase);
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
    invariant(appliedIndex > this.#applied.appliedIndex, 'a state is replaced by a newer one', { appliedIndex });
    const old = this.#records.store;
    this.#records.replace(store);
    this.#applied = store.metaAtOpen;
    this.#flushed = appliedIndex;
    this.#digests.restart(appliedIndex, digest);
    this.#watchers.notify('everything');
    return old.closeAfterScans();
  }

  /** Waits for a flush in flight, writes nothing more and closes the state. */
  async close(): Promise<void> {
    await this.#flushing;
    await this.#records.store.close();
  }

  #applyNothing(index: LogIndex): CommitResult {
    this.#applied = { ...this.#applied, appliedIndex: index };
    return { outcome: 'committed', index };
  }

  #applyTransaction(transaction: Transaction, index: LogIndex): CommitResult {
    if (transaction.restore !== undefined) return this.#applyRestore(transaction.restore, index);
    const effect = applyTransaction(transaction, (path) => this.#records.at(path)?.revision ?? 0);
    const changes: Change[] = [];
    let { digest } = this.#applied;
    for (const { path, value } of effect === 'conflict' ? [] : effect.writes) {
      const changed = this.#write({ name: nameOf(this.#records.spaces, path), value, index }, digest);
      if (changed === undefined) continue;
      digest = changed;
      changes.push({ path, revision: index, deleted: value === null });
    }
    // A conflict's values count too: the leader encrypted them, and the barrier uses this count to limit the use of its key.
    const valuesWritten = this.#applied.valuesWritten + transaction.writes.filter(isPut).length;
    this.#applied = { appliedIndex: index, valuesWritten, digest };
    this.#watchers.notify(changes);
    return { outcome: effect === 'conflict' ? 'conflict' : 'committed', index };
  }

  /**
   * Staged values do not count as written, because they were encrypted before the backup. The swap raises the count to that of the restored
   * state.
   */
  #applyRestore(step: RestoreStep, index: LogIndex): CommitResult {
    const effect = applyRestoreStep(step, this.#records.spaces);
    if (effect === 'conflict') return { ...this.#applyNothing(index), outcome: 'conflict' };
    let { digest, valuesWritten } = this.#applied;
    const { writes, spaces } = effect;
    const all = spaces === undefined ? writes : [...writes, { name: spacesName, value: encodeSpaces(spaces) }];
    for (const { name, value } of all) digest = this.#write({ name, value, index }, digest) ?? digest;
    if (step.kind === 'swap' && spaces !== undefined) valuesWritten = Math.max(valuesWritten, step.valuesWritten);
    this.#applied = { appliedIndex: index, valuesWritten, digest };
    const before = this.#records.spaces;
    this.#records.spaces = spaces ?? before;
    if (this.#records.spaces.live !== before.live) this.#watchers.notify('everything');
    return { outcome: 'committed', index };
  }

  /** Writes one record and returns the new digest; returns undefined when there was nothing to delete. */
  #write(
    { name, value, index }: { name: string; value: Uint8Array | null; index: LogIndex },
    digest: bigint,
  ): bigint | undefined {
    const before = this.#records.find(name);
    if (before === undefined && value === null) return undefined;
    this.#records.pending.set(name, { value, revision: index });
    const without = before === undefined ? digest : removeFromDigest(digest, recordDigest({ path: name, ...before }));
    return value === null ? without : addToDigest(without, recordDigest({ path: name, value, revision: index }));
  }
}

async function* singly<T>(items: AsyncIterable<T>): AsyncGenerator<readonly T[]> {
  for await (const item of items) yield [item];
}

const isPut = ({ value }: Write): boolean => value !== null;

function decodeEntry({ data, index, term }: Entry): Transaction {
  try {
    return decodeTransaction(data);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    invariant(false, 'a committed entry is a transaction of a known format', { index, term, reason: error.message });
  }
}
