import { CodecError, type Entry, invariant, type LogIndex, type StateMachine } from '@transitd/raft-core';
import { damaged } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { decodeTransaction } from '../store/codec.ts';
import { addToDigest, recordDigest, removeFromDigest } from '../store/digest.ts';
import { applyRestoreStep, type RestoreStep } from '../store/restore-step.ts';
import { encodeSpaces, nameOf, spacesName } from '../store/spaces.ts';
import type { Change, Changes, CommitResult, RangePage, RangeQuery, StoredRecord } from '../store/store.ts';
import { applyTransaction, type Transaction, type Write } from '../store/transaction.ts';
import { Watchers } from '../store/watchers.ts';
import { DigestHistory } from './digest-history.ts';
import { openState, Records } from './records.ts';
import type { OpenDatabase } from './state-level.ts';
import { StateLoader } from './state-loader.ts';
import type { StateMeta } from './state-record.ts';
import type { StateSnapshot, StateStore } from './state-store.ts';

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

  /** What a flush would write of the state as a whole: applied index, values written, digest. */
  get applied(): StateMeta {
    return this.#applied;
  }

  /**
   * The digest of the state right after the entry at `index`, on every node the same; undefined unless it is among the newest
   * 1,024 applied here or the newest 64 multiples of 4,096, or is what this node was opened or installed at.
   */
  digestAt(index: LogIndex): bigint | undefined {
    return this.#digests.at(index);
  }

  get flushedIndex(): LogIndex {
    return this.#flushed;
  }

  /** Memory held by writes that are not on disk, in bytes, about: whoever adds to them should wait while this is large. */
  get pendingBytes(): number {
    return this.#records.pending.bytes;
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
        this.#records.pending.settle(writes);
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
    if (path < ' ') return undefined; // a control character begins the names that are no path
    const record = this.#records.at(path);
    return record && { value: Buffer.from(record.value), revision: record.revision };
  }

  /**
   * One page, all of it as of the entries applied when this is called. Entries may be applied before it resolves: who keeps
   * what it answers watches the prefix from before the call.
   * @throws TypeError for a query that breaks its rules
   */
  range(query: RangeQuery): Promise<RangePage> {
    return this.#records.range(query);
  }

  /** The restore that is being staged, if any. */
  get restoring(): string | undefined {
    return this.#records.spaces.attempt?.id;
  }

  /**
   * Names of records that nothing leads to any more, of a state that a restore has replaced or of a restore that was given up: what
   * a `sweep` may delete. Reads as much as it has to.
   */
  deadNames(limit: number): Promise<string[]> {
    return this.#records.deadNames(limit);
  }

  /** See {@link Store.watch}. A listener that throws stops the node: what it keeps may be stale. */
  watch(prefix: string, listener: (changes: Changes) => void): () => void {
    return this.#watchers.add(prefix, listener);
  }

  /** The state on disk, to be read beside everything else: what a peer is sent, and what a backup keeps. */
  snapshot(): StateSnapshot {
    return this.#records.store.snapshot();
  }

  /**
   * The state as of all applied entries, on disk or not, to be written as a snapshot. No entry is applied, and nothing flushed, while it is
   * read.
   */
  appliedState(): Pick<StateSnapshot, 'meta' | 'pages'> {
    return { meta: this.#applied, pages: () => singly(this.#records.all()) };
  }

  /**
   * Sums up the records on disk and compares with the sum that was written with them, a page at a time. When they differ,
   * `onFailure` has been called and nothing is read or written any more: this node is damaged.
   * @throws StorageFailed when the disk fails
   */
  async selfCheck(): Promise<
    { readonly sound: true; readonly index: LogIndex; readonly digest: bigint } | { readonly sound: false }
  > {
    for (;;) {
      const store = this.#records.store;
      try {
        const meta = await store.selfCheck();
        return meta === undefined ? { sound: false } : { sound: true, index: meta.appliedIndex, digest: meta.digest };
      } catch (error) {
        if (store === this.#records.store) throw error; // else another state took its place meanwhile
      }
    }
  }

  /** Opens another state and checks all of it, as at a start; nothing here changes. @throws as {@link open} */
  openBeside(directory: string): Promise<StateStore> {
    return openState(directory, this.#onFailure, this.#openDatabase);
  }

  /** Begins another state, to be filled and then opened; nothing here changes. @throws as {@link open} */
  loadBeside(directory: string): Promise<StateLoader> {
    return StateLoader.create(directory, this.#openDatabase);
  }

  /**
   * Puts another state in the place of this one, with no entry applied and no flush in flight meanwhile: a snapshot that a leader
   * sent. Reads see it from now on; watchers hear that everything may have changed.
   * @returns when the last scan of the old state has ended and it is closed
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
    this.#watchers.tell('everything');
    return old.retire();
  }

  /** Waits for a flush in flight, writes nothing more and lets go of the directory. */
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
    // A conflict's values count too: the leader encrypted them, and the barrier counts its key's use by this.
    const valuesWritten = this.#applied.valuesWritten + transaction.writes.filter(isPut).length;
    this.#applied = { appliedIndex: index, valuesWritten, digest };
    this.#watchers.tell(changes);
    return { outcome: effect === 'conflict' ? 'conflict' : 'committed', index };
  }

  /** What is staged was encrypted elsewhere and earlier: it counts with the state that it comes from, when that goes live. */
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
    if (this.#records.spaces.live !== before.live) this.#watchers.tell('everything');
    return { outcome: 'committed', index };
  }

  /** The digest after it; undefined when there was nothing to delete. */
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
