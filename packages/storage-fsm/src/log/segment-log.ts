import type { Done, Entry, LogIndex, LogStart, LogStore, LogWrite, SnapshotMeta, Term } from '@transitd/raft-core';
import { nodePaths } from '../directory/node-directory.ts';
import type { HighWaterMark } from '../directory/node-state.ts';
import { damaged, StorageDamaged, StorageFailed, StorageInUse } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { unreferencedTimer } from '../timer.ts';
import { createFirstSegment, recoverLog } from './log-recovery.ts';
import { type OpenLog, openLog, type SegmentLogOptions } from './open-log.ts';
import { recordBytes } from './record.ts';
import { Segments } from './segments.ts';
import { checkWrites } from './write-rules.ts';

const markIntervalMs = 200;

interface Waiting {
  readonly write: LogWrite;
  readonly done: Done;
  readonly committedBefore: LogIndex;
  /** Highest index that counts as committed once this write is durable; it may be one of this write's entries. */
  commitAfter: LogIndex;
}

/**
 * The durable log and hard state (Raft figure 2, "persistent state"), in append-only segments and `node.state`. One batch is in flight at a
 * time, with one write and one sync; requests that arrive meanwhile join the next batch. Records are never overwritten: a record supersedes
 * earlier ones at its index and above. After the first error every call fails with it (`StorageFailed`).
 */
export class SegmentLog implements LogStore {
  readonly start: LogStart;
  #parts: OpenLog;
  readonly #stopTimer: () => void;
  /** The newest entry that is durable and that no write in flight supersedes. */
  #durable: { readonly index: LogIndex; readonly term: Term };
  /** Highest index known to be committed; all writes requested before it was reported are durable. */
  #commit: LogIndex;
  /** Highest index ever reported as committed. */
  #noted: LogIndex;
  #waiting: Waiting[] = [];
  #inFlight: readonly Waiting[] = [];
  #writing: Promise<void> | undefined;
  #compacting: Promise<void> = Promise.resolve();
  readonly #reading = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;
  #failure: StorageFailed | undefined;

  private constructor(parts: OpenLog) {
    const { view, start, options } = parts;
    this.#parts = parts;
    this.start = start;
    this.#durable = { index: view.lastIndex, term: view.termAt(view.lastIndex) ?? start.base.term };
    this.#commit = start.hardState.commit;
    this.#noted = this.#commit;
    this.#stopTimer = (options.every ?? unreferencedTimer)(markIntervalMs, () => this.#refreshMark());
  }

  /**
   * Opens the log of the node in `directory` and increments the node's incarnation.
   * @throws StorageDamaged, StorageInUse, StorageFailed
   */
  static async open(directory: string, options: SegmentLogOptions = {}): Promise<SegmentLog> {
    try {
      return new SegmentLog(await openLog(directory, options));
    } catch (error) {
      if (error instanceof StorageDamaged || error instanceof StorageInUse) throw error;
      throw failed(error);
    }
  }

  /** Directory of the state that belongs to this log. */
  get stateDirectory(): string {
    return this.#parts.stateDirectory;
  }

  /** The data directory and the number of its current generation. */
  get place(): { readonly directory: string; readonly generation: number } {
    const { path, nodeState } = this.#parts;
    return { directory: path, generation: nodeState.value.generation };
  }

  /**
   * Checks that the log continues the state that is on disk.
   * @throws StorageDamaged if the state is older than the log's first entry or newer than its last
   */
  verifyAgainstState(flushedIndex: LogIndex): void {
    const { nodeState, view, stateDirectory, logDirectory } = this.#parts;
    const { base } = nodeState.value;
    if (flushedIndex < base.index)
      throw damaged(stateDirectory, `holds the state at entry ${flushedIndex}, and the log begins after entry ${base.index}`);
    if (flushedIndex > view.lastIndex)
      throw damaged(logDirectory, `ends with entry ${view.lastIndex}, and entry ${flushedIndex} was already applied`);
  }

  write(write: LogWrite, done: Done): void {
    const refusal = this.#refusal();
    if (refusal !== undefined) {
      after(this.#writing, () => done(refusal)); // in order with the writes that are still in flight
      return;
    }
    const commitAfter = write.hardState?.commit ?? 0;
    this.#waiting.push({ write, done, committedBefore: this.#noted, commitAfter });
    this.#noted = Math.max(this.#noted, commitAfter);
    this.#writing ??= this.#writeAll();
  }

  noteCommit(index: LogIndex): void {
    this.#noted = Math.max(this.#noted, index);
    const newest = this.#waiting.at(-1) ?? this.#inFlight.at(-1);
    if (newest === undefined) this.#commit = this.#noted;
    else newest.commitAfter = this.#noted;
  }

  read(
    range: { lo: LogIndex; hi: LogIndex; maxBytes: number },
    done: (error: Error | undefined, entries: readonly Entry[]) => void,
  ): void {
    const reading = this.#read(range).then(
      (entries) => after(undefined, () => done(undefined, entries)),
      (error: Error) => after(undefined, () => done(error, [])),
    );
    this.#reading.add(reading);
    after(reading, () => this.#reading.delete(reading));
  }

  compact(base: SnapshotMeta, done: Done): void {
    const refusal = this.#refusal();
    if (refusal === undefined) this.#compacting = this.#compacting.then(() => this.#attempt(() => this.#compactTo(base)));
    after(this.#compacting, () => done(refusal ?? this.#failure));
  }

  /** Creates the empty log of a generation that will hold a fetched snapshot, durably; the current generation does not change. */
  async createGenerationLog(generation: number): Promise<void> {
    const { path, disk } = this.#parts;
    const directory = nodePaths(path).log(generation);
    await disk.makeDirectory(directory);
    await createFirstSegment(disk, directory, { number: 1, nodeId: this.start.nodeId });
  }

  /**
   * Switches to another generation, whose durable state is that of `meta`: from then on the log is empty and begins after `meta`. Term and
   * vote stay. No other operation may be in flight on this log. The switch is one write of `node.state`, so after a crash either the old
   * generation or the new one is current. The old one stays on the disk.
   */
  install(meta: SnapshotMeta, generation: number): Promise<void> {
    const refusal = this.#refusal();
    if (refusal !== undefined) return Promise.reject(refusal);
    this.#compacting = this.#compacting.then(() => this.#attempt(() => this.#installAt(meta, generation)));
    return this.#compacting.then(() => {
      if (this.#failure !== undefined) throw this.#failure;
    });
  }

  /** Finishes all requests, raises the high-water mark, and releases the directory. */
  close(done: Done): void {
    this.#closing ??= this.#close();
    after(this.#closing, () => done(this.#failure));
  }

  #refusal(): StorageFailed | undefined {
    return this.#failure ?? (this.#closing && new StorageFailed('the log is closed'));
  }

  async #writeAll(): Promise<void> {
    await Promise.resolve(); // requests made in one event-loop turn share one sync
    while (this.#waiting.length > 0) {
      const group = this.#takeGroup();
      this.#inFlight = group;
      await this.#attempt(() => this.#store(group));
      this.#inFlight = [];
      const failure = this.#failure;
      for (const { done, commitAfter } of group) {
        if (failure === undefined) this.#commit = Math.max(this.#commit, commitAfter);
        after(undefined, () => done(failure));
      }
    }
    this.#writing = undefined;
  }

  /** Removes and returns the first waiting writes, as many as one batch holds, at least one. */
  #takeGroup(): Waiting[] {
    let bytes = 0;
    const tooMany = this.#waiting.findIndex(({ write }, i) => {
      bytes += write.entries.reduce((sum, entry) => sum + recordBytes(entry), 0);
      return i > 0 && bytes > this.#parts.groupBytes;
    });
    return this.#waiting.splice(0, tooMany === -1 ? this.#waiting.length : tooMany);
  }

  /** Stores the newest hard state of the group before the entries: a term without its entries is a legal state, the reverse is not. */
  async #store(group: readonly Waiting[]): Promise<void> {
    const { view, nodeState, segments } = this.#parts;
    const { value } = nodeState;
    checkWrites(group, { lastIndex: view.lastIndex, hardState: value, termAt: (index) => view.termAt(index) });
    const { term, vote } = group.findLast(({ write }) => write.hardState !== undefined)?.write.hardState ?? value;
    const entries = group.flatMap(({ write }) => write.entries);
    const first = Math.min(...group.map(({ write }) => write.entries[0]?.index ?? Number.POSITIVE_INFINITY));
    const supersedes = first <= this.#durable.index;
    if (supersedes) this.#durable = { index: first - 1, term: view.termAt(first - 1) ?? 0 };
    if (supersedes || term !== value.term || vote !== value.vote)
      await nodeState.replace((now) => ({ ...now, term, vote, mark: this.#mark() }));
    if (entries.length === 0) return;
    for (const stored of await segments.append(entries)) view.append(stored);
    this.#durable = { index: view.lastIndex, term: view.termAt(view.lastIndex) ?? 0 };
  }

  async #read(range: { lo: LogIndex; hi: LogIndex; maxBytes: number }): Promise<Entry[]> {
    const refusal = this.#refusal();
    if (refusal !== undefined) throw refusal;
    const found = this.#parts.view.range(range);
    try {
      return await this.#parts.segments.read(found);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  async #compactTo(base: SnapshotMeta): Promise<void> {
    const { view, nodeState, segments } = this.#parts;
    if (base.index <= nodeState.value.base.index) return;
    if (base.index > this.#durable.index || view.termAt(base.index) !== base.term)
      throw new RangeError(`the log cannot begin after entry ${base.index} of term ${base.term}: it does not hold that entry`);
    const firstSegment = segments.firstNeeded(view, base.index + 1);
    await nodeState.replace((now) => ({ ...now, base, firstSegment, mark: this.#mark() }));
    view.dropUpTo(base);
    await Promise.all(this.#reading);
    await segments.dropBefore(firstSegment);
  }

  async #installAt(meta: SnapshotMeta, generation: number): Promise<void> {
    const { path, disk, sizes, nodeState, segments: old } = this.#parts;
    const { log, state: stateOf } = nodePaths(path);
    const { value } = nodeState;
    if (this.#writing !== undefined) throw new RangeError('a snapshot cannot be installed while the log is being written');
    if (meta.index <= this.#noted || meta.term > value.term)
      throw new RangeError(
        `entry ${meta.index} of term ${meta.term} cannot follow a log of term ${value.term} that is committed to ${this.#noted}`,
      );
    const end = { index: meta.index, term: meta.term };
    const begun = { generation, base: meta, firstSegment: 1, mark: { ...end, commit: meta.index } };
    const logDirectory = log(generation);
    const found = await recoverLog({ disk, directory: logDirectory, state: { ...value, ...begun } });
    const segments = new Segments({ disk, directory: logDirectory }, sizes, found);
    failpoint('snapshot.before_switch');
    await nodeState.replace((now) => {
      // Set in this event-loop turn, because a high-water mark that is written later must be that of the new log.
      this.#durable = end;
      this.#commit = meta.index;
      this.#noted = meta.index;
      return { ...now, ...begun };
    });
    failpoint('snapshot.after_switch');
    this.#parts = { ...this.#parts, view: found.view, segments, stateDirectory: stateOf(generation), logDirectory };
    await Promise.all(this.#reading);
    await old.close();
  }

  async #close(): Promise<void> {
    this.#stopTimer();
    const { nodeState, segments, unlock } = this.#parts;
    await this.#writing;
    await this.#compacting;
    await Promise.all(this.#reading);
    await this.#attempt(() => nodeState.raiseMark(() => this.#mark()));
    const closed = await Promise.allSettled([nodeState.close(), segments.close(), unlock()]);
    for (const outcome of closed) if (outcome.status === 'rejected') this.#fail(outcome.reason);
  }

  /** Writes one slot, and only when the mark has changed, so that an idle node does not write to its disk. */
  #refreshMark(): void {
    const { index, commit } = this.#parts.nodeState.value.mark;
    const now = this.#mark();
    if (now.index > index || now.commit > commit) void this.#attempt(() => this.#parts.nodeState.raiseMark(() => this.#mark()));
  }

  #mark(): HighWaterMark {
    return { ...this.#durable, commit: Math.min(this.#commit, this.#durable.index) };
  }

  /** Runs the task unless the log has failed; keeps the first failure. */
  async #attempt(task: () => Promise<void>): Promise<void> {
    if (this.#failure !== undefined) return;
    try {
      await task();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(cause: unknown): StorageFailed {
    if (this.#failure !== undefined) return this.#failure;
    const failure = failed(cause);
    this.#failure = failure;
    this.#stopTimer();
    after(undefined, () => this.#parts.options.onFailure?.(failure));
    return failure;
  }
}

const failed = (cause: unknown): StorageFailed => {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StorageFailed(`nothing more can be stored or acknowledged: ${reason}`, { cause });
};

/** Calls back in a separate microtask, so that an error thrown by the callback does not end up in the log. */
function after(earlier: Promise<void> | undefined, callback: () => void): void {
  if (earlier === undefined) queueMicrotask(callback);
  else void earlier.then(() => queueMicrotask(callback));
}
