import { CodecError, type Entry, invariant, type LogIndex, type StateMachine } from '@transitd/raft-core';
import { decodeTransaction } from './codec.ts';
import { addToDigest, recordDigest, removeFromDigest } from './digest.ts';
import { DigestHistory } from './digest-history.ts';
import { failpoint } from './failpoint.ts';
import { Overlay } from './overlay.ts';
import { comparePaths } from './path.ts';
import { checkQuery, mergeAscending, mergeRows, type Row, takePage } from './range.ts';
import { applyRestoreStep, type RestoreStep } from './restore-step.ts';
import {
  decodeSpaces,
  encodeSpaces,
  isDead,
  nameOf,
  noSpaces,
  type Spaces,
  spaceHead,
  spaceOf,
  spacesBelow,
  spacesName,
  visiblePath,
} from './spaces.ts';
import type { OpenDatabase } from './state-level.ts';
import { StateLoader } from './state-loader.ts';
import type { StateMeta } from './state-record.ts';
import { type StateSnapshot, StateStore } from './state-store.ts';
import { damaged } from './storage-errors.ts';
import type { Change, Changes, CommitResult, RangePage, RangeQuery, StoredRecord } from './store.ts';
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
  /** Index of the newest entry that was on disk when this was opened. */
  readonly flushedAtOpen: LogIndex;
  readonly #onFailure: (error: Error) => void;
  readonly #openDatabase: OpenDatabase | undefined;
  #store: StateStore;
  #overlay = new Overlay();
  readonly #watchers = new Watchers();
  readonly #digests = new DigestHistory();
  #applied: StateMeta;
  #spaces: Spaces;
  #flushed: LogIndex;
  #flushing: Promise<void> | undefined;

  private constructor(store: StateStore, onFailure: (error: Error) => void, openDatabase: OpenDatabase | undefined) {
    const { appliedIndex, digest } = store.metaAtOpen;
    this.#onFailure = onFailure;
    this.#openDatabase = openDatabase;
    this.#store = store;
    this.#applied = store.metaAtOpen;
    this.#spaces = storedSpaces(store);
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
    this.#digests.note(index, this.#applied.digest);
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
    if (path < ' ') return undefined; // a control character begins the names that are no path
    const record = this.#find(nameOf(this.#spaces, path));
    return record && { value: Buffer.from(record.value), revision: record.revision };
  }

  /**
   * One page, all of it as of the entries applied when this is called. Entries may be applied before it resolves: who keeps
   * what it answers watches the prefix from before the call.
   * @throws TypeError for a query that breaks its rules
   */
  async range(query: RangeQuery): Promise<RangePage> {
    checkQuery(query);
    const spaces = this.#spaces;
    const sources = spacesBelow(spaces, query.prefix).map((space) => this.#rowsOf(space, query, spaces));
    return takePage(query, sources.length === 1 && sources[0] !== undefined ? sources[0] : mergeAscending(sources));
  }

  /** The restore that is being staged, if any. */
  get restoring(): string | undefined {
    return this.#spaces.attempt?.id;
  }

  /**
   * Names of records that nothing leads to any more, of a state that a restore has replaced or of a restore that was given up: what
   * a `sweep` may delete. Reads as much as it has to.
   */
  async deadNames(limit: number): Promise<string[]> {
    const names: string[] = [];
    const spaces = this.#spaces;
    for (let space = 0; space < spaces.nextSpace; space++) {
      const isWholeLive =
        spaces.routes.length === 0 ? space === 0 : spaces.routes.some((route) => route.prefix === '' && route.space === space);
      if (isWholeLive || space === spaces.attempt?.space) continue;
      for await (const { path: name } of this.#merged(inSpace(space, { prefix: '' }))) {
        if (!isDead(spaces, name)) continue;
        names.push(name);
        if (names.length >= limit) return names;
      }
    }
    return names;
  }

  /** See {@link Store.watch}. A listener that throws stops the node: what it keeps may be stale. */
  watch(prefix: string, listener: (changes: Changes) => void): () => void {
    return this.#watchers.add(prefix, listener);
  }

  /** The state on disk, to be read beside everything else: what a peer is sent, and what a backup keeps. */
  snapshot(): StateSnapshot {
    return this.#store.snapshot();
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
      const store = this.#store;
      try {
        const meta = await store.selfCheck();
        return meta === undefined ? { sound: false } : { sound: true, index: meta.appliedIndex, digest: meta.digest };
      } catch (error) {
        if (store === this.#store) throw error; // else another state took its place meanwhile
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
    const old = this.#store;
    this.#store = store;
    this.#overlay = new Overlay();
    this.#applied = store.metaAtOpen;
    this.#spaces = storedSpaces(store);
    this.#flushed = appliedIndex;
    this.#digests.restart(appliedIndex, digest);
    this.#watchers.tell('everything');
    return old.retire();
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
    if (transaction.restore !== undefined) return this.#applyRestore(transaction.restore, index);
    const effect = applyTransaction(transaction, (path) => this.#find(nameOf(this.#spaces, path))?.revision ?? 0);
    const changes: Change[] = [];
    let { digest } = this.#applied;
    for (const { path, value } of effect === 'conflict' ? [] : effect.writes) {
      const changed = this.#write({ name: nameOf(this.#spaces, path), value, index }, digest);
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
    const effect = applyRestoreStep(step, this.#spaces);
    if (effect === 'conflict') return { ...this.#applyNothing(index), outcome: 'conflict' };
    let { digest, valuesWritten } = this.#applied;
    const { writes, spaces } = effect;
    const all = spaces === undefined ? writes : [...writes, { name: spacesName, value: encodeSpaces(spaces) }];
    for (const { name, value } of all) digest = this.#write({ name, value, index }, digest) ?? digest;
    if (step.kind === 'swap' && spaces !== undefined) valuesWritten = Math.max(valuesWritten, step.valuesWritten);
    this.#applied = { appliedIndex: index, valuesWritten, digest };
    const before = this.#spaces;
    this.#spaces = spaces ?? before;
    if (this.#spaces.live !== before.live) this.#watchers.tell('everything');
    return { outcome: 'committed', index };
  }

  /** The digest after it; undefined when there was nothing to delete. */
  #write(
    { name, value, index }: { name: string; value: Uint8Array | null; index: LogIndex },
    digest: bigint,
  ): bigint | undefined {
    const before = this.#find(name);
    if (before === undefined && value === null) return undefined;
    this.#overlay.set(name, { value, revision: index });
    const without = before === undefined ? digest : removeFromDigest(digest, recordDigest({ path: name, ...before }));
    return value === null ? without : addToDigest(without, recordDigest({ path: name, value, revision: index }));
  }

  /** What readers see of one space, under the paths that they know, as it is at this call. */
  #rowsOf(space: number, query: RangeQuery, spaces: Spaces): AsyncGenerator<Row> {
    return visibleRows(this.#merged(inSpace(space, query)), spaces, space);
  }

  /** Records by name. */
  #merged(query: Pick<RangeQuery, 'prefix' | 'after'>): AsyncGenerator<Row> {
    // Both are taken in this turn. A write in flight to disk is still in the overlay, so it counts the same whether the scan's
    // snapshot has it already or not; a settled one is in the snapshot for certain.
    const pending = this.#overlay.within(query);
    const stored = this.#store.scan(query);
    return mergeRows(stored, pending);
  }

  /** The record as it is kept here; not to be handed out. */
  #find(name: string): StoredRecord | undefined {
    const pending = this.#overlay.get(name);
    if (pending === undefined) return this.#store.getSync(name);
    const { value, revision } = pending;
    return value === null ? undefined : { value, revision };
  }
}

/** The records of a space that a query covers, by name. In space 0 those of the others and the record of the spaces sort first. */
const inSpace = (
  space: number,
  { prefix, after = '' }: Pick<RangeQuery, 'prefix' | 'after'>,
): { prefix: string; after: string } => {
  const head = spaceHead(space);
  const from = space === 0 && comparePaths(after, lastControl) < 0 ? lastControl : after;
  return { prefix: head + prefix, after: from === '' ? '' : head + from };
};

async function* visibleRows(rows: AsyncIterable<Row>, spaces: Spaces, space: number): AsyncGenerator<Row> {
  for await (const row of rows) {
    const path = visiblePath(spaces, row.path);
    if (path !== undefined && spaceOf(spaces, path) === space) yield { ...row, path };
  }
}

const lastControl = '\u001f';

/** Checks the record of the spaces too: without it nobody knows which records are read. */
async function openState(directory: string, onFailure: (error: Error) => void, openDatabase?: OpenDatabase): Promise<StateStore> {
  const store = await StateStore.open(directory, onFailure, openDatabase);
  try {
    storedSpaces(store);
    return store;
  } catch (error) {
    await store.close();
    throw error instanceof CodecError
      ? damaged(directory, `has a record that this program does not know (${error.message})`)
      : error;
  }
}

const storedSpaces = (store: StateStore): Spaces => {
  const record = store.getSync(spacesName);
  return record === undefined ? noSpaces : decodeSpaces(record.value);
};

const isPut = ({ value }: Write): boolean => value !== null;

function decodeEntry({ data, index, term }: Entry): Transaction {
  try {
    return decodeTransaction(data);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    invariant(false, 'a committed entry is a transaction of a known format', { index, term, reason: error.message });
  }
}
