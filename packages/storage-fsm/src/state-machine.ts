import { CodecError, type Entry, invariant, type LogIndex, type StateMachine } from '@transitd/raft-core';
import { decodeTransaction } from './codec.ts';
import { addToDigest, recordDigest, removeFromDigest } from './digest.ts';
import { failpoint } from './failpoint.ts';
import { Overlay } from './overlay.ts';
import { checkQuery, mergeRows, takePage } from './range.ts';
import type { StateMeta } from './state-record.ts';
import { type OpenDatabase, StateStore } from './state-store.ts';
import { damaged } from './storage-errors.ts';
import type { Change, CommitResult, RangePage, RangeQuery, StoredRecord } from './store.ts';
import { applyTransaction, type Transaction, type Write } from './transaction.ts';
import { Watchers } from './watchers.ts';

export interface KeyValueMachineOptions {
  /** The generation's state directory; nothing else lives in it. */
  readonly directory: string;
  /** Index up to which the log has forgotten its entries: an older state cannot be brought up to date. */
  readonly base: LogIndex;
  /** Called once, at the first error of the state store, reads included: a node whose state cannot be read must not serve. */
  readonly onFailure?: (error: Error) => void;
  /** `level` on this machine's disk unless given. */
  readonly openDatabase?: OpenDatabase;
}

/**
 * The replicated records. An applied entry is visible to every read at once, from memory; a later flush brings what has gathered
 * to disk, in one synced batch with the applied index and the digest (raft-core's two indexes, applied and flushed).
 */
export class KeyValueMachine implements StateMachine<CommitResult> {
  readonly #store: StateStore;
  readonly #overlay = new Overlay();
  readonly #watchers = new Watchers();
  #applied: StateMeta;
  #flushed: LogIndex;
  #flushing: Promise<void> | undefined;

  private constructor(store: StateStore) {
    this.#store = store;
    this.#applied = store.metaAtOpen;
    this.#flushed = store.metaAtOpen.appliedIndex;
  }

  /** @throws StorageDamaged, StorageInUse or StorageFailed, as {@link StateStore.open} does */
  static async open({ directory, base, onFailure, openDatabase }: KeyValueMachineOptions): Promise<KeyValueMachine> {
    const store = await StateStore.open(directory, onFailure, openDatabase);
    const { appliedIndex } = store.metaAtOpen;
    if (appliedIndex >= base) return new KeyValueMachine(store);
    await store.close();
    throw damaged(directory, `ends at index ${appliedIndex}, but the log has dropped its entries up to ${base}`);
  }

  get flushedAtOpen(): LogIndex {
    return this.#store.metaAtOpen.appliedIndex;
  }

  /** What a flush would write of the state as a whole: applied index, values written, digest. */
  get applied(): StateMeta {
    return this.#applied;
  }

  get flushedIndex(): LogIndex {
    return this.#flushed;
  }

  /** Memory held by writes that are not on disk, in bytes, about: whoever adds to them should wait while this is large. */
  get pendingBytes(): number {
    return this.#overlay.bytes;
  }

  /**
   * @throws InvariantViolation for an entry out of turn or one that is no transaction: every node finds the same
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
    failpoint('state.after_apply');
    return result;
  }

  flush(done: (error: Error | undefined, flushed: LogIndex) => void): void {
    invariant(this.#flushing === undefined, 'one flush is in flight', { flushed: this.#flushed });
    const target = this.#applied;
    const writes = this.#overlay.capture();
    this.#flushing = this.#store.write(writes, target).then(
      () => {
        this.#flushing = undefined;
        this.#overlay.settle(writes);
        this.#flushed = target.appliedIndex;
        done(undefined, target.appliedIndex);
      },
      (error: Error) => {
        this.#flushing = undefined;
        done(error, this.#flushed);
      },
    );
  }

  /** The record as of all applied entries; its bytes are the caller's own. Reads memory, then `level` on this thread. */
  getSync(path: string): StoredRecord | undefined {
    const record = this.#find(path);
    return record && { value: Buffer.from(record.value), revision: record.revision };
  }

  /**
   * One page, all of it as of the entries applied when this is called. Entries may be applied before it resolves: who keeps
   * what it answers watches the prefix from before the call.
   * @throws TypeError for a query that breaks its rules
   */
  async range(query: RangeQuery): Promise<RangePage> {
    checkQuery(query);
    // Both are taken in this turn. A write in flight to disk is still in the overlay, so it counts the same whether the scan's
    // snapshot has it already or not; a settled one is in the snapshot for certain.
    const pending = this.#overlay.within(query);
    const stored = this.#store.scan(query);
    return takePage(query, mergeRows(stored, pending));
  }

  /** See {@link Store.watch}. A listener that throws stops the node: what it keeps may be stale. */
  watch(prefix: string, listener: (changes: readonly Change[]) => void): () => void {
    return this.#watchers.add(prefix, listener);
  }

  /** Waits for a flush in flight, writes nothing more and lets go of the directory. */
  async close(): Promise<void> {
    await this.#flushing;
    await this.#store.close();
  }

  #applyNothing(index: LogIndex): CommitResult {
    this.#applied = { ...this.#applied, appliedIndex: index };
    return { outcome: 'committed', index };
  }

  #applyTransaction(transaction: Transaction, index: LogIndex): CommitResult {
    const effect = applyTransaction(transaction, (path) => this.#find(path)?.revision ?? 0);
    let { digest } = this.#applied;
    const changes: Change[] = [];
    for (const { path, value } of effect === 'conflict' ? [] : effect.writes) {
      const before = this.#find(path);
      if (before === undefined && value === null) continue;
      if (before !== undefined) digest = removeFromDigest(digest, recordDigest({ path, ...before }));
      if (value !== null) digest = addToDigest(digest, recordDigest({ path, value, revision: index }));
      this.#overlay.set(path, { value, revision: index });
      changes.push({ path, revision: index, deleted: value === null });
    }
    // A conflict's values count too: the leader encrypted them, and the barrier counts its key's use by this.
    const valuesWritten = this.#applied.valuesWritten + transaction.writes.filter(isPut).length;
    this.#applied = { appliedIndex: index, valuesWritten, digest };
    this.#watchers.tell(changes);
    return { outcome: effect === 'conflict' ? 'conflict' : 'committed', index };
  }

  /** The record as it is kept here; not to be handed out. */
  #find(path: string): StoredRecord | undefined {
    const pending = this.#overlay.get(path);
    if (pending === undefined) return this.#store.getSync(path);
    const { value, revision } = pending;
    return value === null ? undefined : { value, revision };
  }
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
