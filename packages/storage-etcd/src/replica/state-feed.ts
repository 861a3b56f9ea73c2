import { setTimeout as delay } from 'node:timers/promises';
import { type Changes, Watchers } from '@transitd/storage-fsm';
import { Copy, CopyFault, type SeenMarker } from '../copy/copy.ts';
import type { Keys } from '../copy/keys.ts';
import { WatchRevisions } from '../copy/watch-revisions.ts';
import { type Etcd, EtcdError, type EtcdRow } from '../etcd.ts';
import { pagesOf } from './pages.ts';

/** Most rows that are read at once. */
const pageRows = 250;
/** Readings of the state that may fail because etcd was compacted meanwhile. */
const readsMax = 5;

export interface StateFeedOptions {
  readonly etcd: Etcd;
  readonly keys: Keys;
  /** A watch that shows nothing for so long is opened again. The active node's heartbeats come more often. */
  readonly idleMs: number;
  /** Pause before the watch is opened again after a failure. */
  readonly retryMs: number;
  /** The watch failed, or the state had to be read again. */
  readonly onFault: (error: Error) => void;
}

interface Waiter {
  readonly revision: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Keeps a copy of the state up to date by one watch, and reads it again whenever the watch may have missed something. */
export class StateFeed {
  readonly #options: StateFeedOptions;
  readonly #watchers = new Watchers();
  readonly #waiters = new Set<Waiter>();
  readonly #observers = new Set<() => void>();
  readonly #closing = new AbortController();
  #watching = new AbortController();
  #copy: Copy;
  #isSuspect = false;
  #running: Promise<void> = Promise.resolve();

  private constructor(options: StateFeedOptions, copy: Copy) {
    this.#options = options;
    this.#copy = copy;
  }

  /** Reads the whole state, and follows it from then on. @throws EtcdError, CopyFault */
  static async open(options: StateFeedOptions): Promise<StateFeed> {
    const feed = new StateFeed(options, await readState(options));
    feed.#running = feed.#run();
    return feed;
  }

  get copy(): Copy {
    return this.#copy;
  }

  watch(prefix: string, listener: (changes: Changes) => void): () => void {
    return this.#watchers.add(prefix, listener);
  }

  /** Calls `observer` after each revision and each reading; returns a function that ends that. */
  observe(observer: () => void): () => void {
    this.#observers.add(observer);
    return () => void this.#observers.delete(observer);
  }

  /**
   * Resolves when the copy contains `revision`, at which a key below the prefix was written.
   * @throws Error after `timeoutMs`, and when the feed closes
   */
  async reached(revision: number, timeoutMs: number): Promise<void> {
    if (this.#copy.revision >= revision) return;
    if (this.#closing.signal.aborted) throw new Error('this node is stopping');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { revision, resolve, reject };
    this.#waiters.add(waiter);
    const timer = setTimeout(() => reject(new Error(`the watch has not shown revision ${revision} in time`)), timeoutMs);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#waiters.delete(waiter);
    }
  }

  /** Reads the state again: the copy has been found to be wrong. */
  suspect(): void {
    this.#isSuspect = true;
    this.#watching.abort();
  }

  /**
   * Compares the marker that a linearizable read has found with the one that the copy had when the read was sent. After a restore of etcd
   * a revision that the copy has reached says nothing about the present history.
   * @throws CopyFault if etcd has lost a commit that this node has seen; the state is then read again
   */
  requireHistory(before: SeenMarker, found: EtcdRow | undefined): void {
    const { modRevision = 0 } = found ?? {};
    if (modRevision > before.revision || (modRevision === before.revision && (found === undefined || isOf(before, found))))
      return;
    this.suspect();
    throw new CopyFault('etcd has lost commits that this node has seen: it was restored');
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const { reject } of this.#waiters) reject(new Error('this node is stopping'));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (this.#isSuspect || !(await this.#continues())) await this.#readAgain();
        if (!this.#isSuspect) await this.#follow();
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof CopyFault) this.#isSuspect = true;
        this.#options.onFault(error instanceof Error ? error : new Error(String(error)));
      }
      await delay(this.#options.retryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /**
   * Returns whether etcd still has the state that this copy is based on. After a restore of etcd its revisions begin again at a lower
   * number, and a watch from the old one would show nothing, or only later changes.
   */
  async #continues(): Promise<boolean> {
    const { etcd, keys } = this.#options;
    const { revision, marker } = this.#copy;
    try {
      const { rows } = await etcd.range({ key: keys.marker, revision });
      return rows[0] === undefined ? marker.revision === 0 : isOf(marker, rows[0]);
    } catch (error) {
      if (error instanceof EtcdError && error.kind === 'compacted') return false;
      throw error;
    }
  }

  async #readAgain(): Promise<void> {
    // Ended before the reading: a suspicion that arrives during it concerns the new copy too.
    this.#isSuspect = false;
    let copy: Copy;
    try {
      copy = await readState(this.#options);
    } catch (error) {
      this.#isSuspect = true;
      throw error;
    }
    if (this.#closing.signal.aborted) return;
    this.#copy = copy;
    this.#publish('everything');
  }

  async #follow(): Promise<void> {
    const { etcd, keys, idleMs, onFault } = this.#options;
    const startRevision = this.#copy.revision + 1;
    const revisions = new WatchRevisions(startRevision);
    const idle = new AbortController();
    const timer = setTimeout(() => idle.abort(), idleMs);
    this.#watching = new AbortController();
    const signal = AbortSignal.any([idle.signal, this.#watching.signal, this.#closing.signal]);
    try {
      for await (const message of etcd.watch({ key: keys.start, end: keys.end, startRevision }, signal)) {
        if (signal.aborted) return;
        timer.refresh();
        if (message.kind === 'canceled') {
          if (message.compactRevision > 0) this.#isSuspect = true;
          onFault(new Error(`etcd ended the watch: ${message.reason || `revision ${startRevision} is compacted`}`));
          return;
        }
        if (message.kind === 'created') continue;
        const complete = revisions.take(message);
        if (complete === 'disordered') throw new CopyFault('the revisions of the watch do not ascend');
        for (const revision of complete) {
          const changes = this.#copy.apply(revision);
          if (changes === 'replaced') return await this.#readAgain();
          this.#publish(changes);
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Watchers learn of the changes before any later read, and before a commit or `fresh` that waits for them resolves. */
  #publish(changes: Changes): void {
    if (changes === 'everything' || changes.length > 0) this.#watchers.notify(changes);
    for (const { revision, resolve } of this.#waiters) if (revision <= this.#copy.revision) resolve();
    for (const observer of [...this.#observers]) observer();
  }
}

/** Whether this row of the marker was written by that commit. */
const isOf = ({ revision, attempt }: SeenMarker, row: EtcdRow): boolean =>
  row.modRevision === revision && Buffer.from(row.value).includes(`"${attempt}"`);

/** Reads all keys below the prefix as of one revision, page by page. @throws EtcdError, CopyFault */
export async function readState({ etcd, keys }: Pick<StateFeedOptions, 'etcd' | 'keys'>): Promise<Copy> {
  for (let reads = 1; ; reads++) {
    try {
      return await Copy.of(keys, pagesOf(etcd, { key: keys.start, end: keys.end, limit: pageRows, isPinned: true }));
    } catch (error) {
      if (!(error instanceof EtcdError && error.kind === 'compacted') || reads === readsMax) throw error;
    }
  }
}
