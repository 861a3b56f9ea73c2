import { addToDigest, type CommitResult, emptyDigest, type RestoreStep, recordDigest, StoreError } from '@transitd/storage-fsm';
import type { CommitOrder } from '../commit/commit-order.ts';
import { stagingOf, swapOf } from '../commit/plan.ts';
import type { Keys } from '../copy/keys.ts';
import { decodeRecord } from '../copy/record-value.ts';
import { type Etcd, type EtcdCompare, EtcdError, type EtcdRow } from '../etcd.ts';
import { type ActiveRole, notActive } from './active-role.ts';
import { type ActiveWrites, isDone } from './active-writes.ts';
import { pagesOf } from './pages.ts';
import type { StateFeed } from './state-feed.ts';

export interface RestoresParts {
  readonly etcd: Etcd;
  readonly keys: Keys;
  readonly feed: StateFeed;
  readonly role: ActiveRole;
  readonly writes: ActiveWrites;
  readonly order: CommitOrder;
  readonly newAttempt: () => string;
  /** A restore is about to take effect, and with it another count of values: what was reserved of the present one is given up. */
  readonly onSwap: () => void;
}

interface Staged {
  readonly attempt: string;
  readonly since: number;
  readonly space: number;
  /** Holds while no node reads the space. */
  readonly unread: EtcdCompare;
  chunks: number;
}

type Step<Kind extends RestoreStep['kind']> = Extract<RestoreStep, { kind: Kind }>;

/** Most rows that are read, and then perhaps deleted, at once. */
const pageRows = 100;
/** Attempts at a step before the last write: a large restore must not fail because etcd was slow once. */
const attemptsMax = 3;
/** Longest time that a node may take to read the restored state. */
const readWithinMs = 600_000;

/**
 * Restores on the active node. The records are staged in the next space, whose keys no node reads. One last write makes that space the one
 * of the readers, and every node then reads the state again. Until that write the old state stays, whatever fails.
 *
 * Which attempt is staged is only in memory: after a change of the active node, a restore begins again.
 */
export class Restores {
  readonly #parts: RestoresParts;
  #staged: Staged | undefined;
  /** Ends with the last step; the next step waits for it. */
  #running: Promise<unknown> = Promise.resolve();

  constructor(parts: RestoresParts) {
    this.#parts = parts;
  }

  /** Carries out a step. @throws StoreError; TypeError for a step that only Raft has */
  apply(step: RestoreStep): Promise<CommitResult> {
    return this.#exclusively(() => {
      if (!this.#parts.role.isReady) throw notActive();
      switch (step.kind) {
        case 'stage':
          return this.#stage(step);
        case 'swap':
          return this.#swap(step);
        case 'abandon':
          return this.#abandon(step);
        case 'sweep':
          throw new TypeError('the store in etcd names no unreachable records');
      }
    });
  }

  /** Abandons the restore that is staged, unless it is `underWay`, and deletes the records of other spaces. @throws StoreError */
  clear(underWay?: string): Promise<void> {
    return this.#exclusively(async () => {
      if (this.#staged !== undefined && this.#staged.attempt === underWay) return;
      this.#staged = undefined;
      await this.#clearSpaces();
    });
  }

  #exclusively<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#running.then(task);
    this.#running = done.catch(() => undefined);
    return done;
  }

  get #unchanged(): Pick<CommitResult, 'index' | 'revision'> {
    const { revision } = this.#parts.feed.copy.marker;
    return { index: revision, revision };
  }

  /**
   * Holds while the space of the readers is that of the copy. Writes to another space compare it: the copy may not show yet that a restore
   * of unknown outcome took effect, or that etcd was restored.
   */
  get #unread(): EtcdCompare {
    const { feed, keys } = this.#parts;
    return { key: keys.space, modRevision: feed.copy.spaceRevision };
  }

  /** Returns the attempt if its records are still there: another node that was active meanwhile may have deleted them. */
  #stagedBy(attempt: string) {
    const { feed, role } = this.#parts;
    const staged = this.#staged;
    const isStill = staged?.attempt === attempt && staged.since === role.since && staged.space === feed.copy.space + 1;
    return isStill ? staged : undefined;
  }

  async #stage({ attempt, chunk, records }: Step<'stage'>): Promise<CommitResult> {
    const { feed, role, writes, keys } = this.#parts;
    if (feed.copy.restoredBy === attempt) return { outcome: 'committed', ...this.#unchanged };
    if (chunk === 0 && this.#stagedBy(attempt) === undefined) {
      this.#staged = undefined;
      await this.#clearSpaces();
      if (role.since === undefined) throw notActive();
      this.#staged = { attempt, since: role.since, space: feed.copy.space + 1, unread: this.#unread, chunks: 0 };
    }
    const staged = this.#stagedBy(attempt);
    if (staged === undefined || chunk > staged.chunks) return { outcome: 'conflict', ...this.#unchanged };
    if (chunk === staged.chunks) {
      const parts = stagingOf(records, staged.space, keys);
      const written = await Promise.allSettled(parts.map((puts) => this.#again(() => writes.write(puts, [staged.unread]))));
      for (const one of written) if (one.status === 'rejected') throw one.reason;
      staged.chunks += 1;
    }
    return { outcome: 'committed', ...this.#unchanged };
  }

  async #swap(step: Step<'swap'>): Promise<CommitResult> {
    const { feed, role, writes, order, keys, newAttempt, onSwap } = this.#parts;
    if (step.keep.length > 0) throw new TypeError('a restore in etcd keeps no records');
    if (feed.copy.restoredBy === step.attempt) return { outcome: 'committed', ...this.#unchanged };
    const staged = this.#stagedBy(step.attempt);
    if (staged === undefined || !(await this.#holds(staged.space, step))) return { outcome: 'conflict', ...this.#unchanged };
    const leave = await order.enter('all');
    try {
      const activeRevision = await role.settledRevision();
      if (!role.isReady || this.#stagedBy(step.attempt) === undefined) throw notActive();
      onSwap();
      const live = { space: staged.space, attempt: step.attempt };
      const body = swapOf({ copy: feed.copy, keys, attempt: newAttempt() }, live, step.valuesWritten);
      const answer = await writes.send(activeRevision, body);
      if (!answer.succeeded) throw notActive();
      if (!isDone(answer)) throw new StoreError('busy', 'another commit came between, and nothing was changed; restore again');
      const { revision } = answer;
      await writes.seen(revision, readWithinMs);
      return { outcome: 'committed', index: revision, revision };
    } finally {
      this.#staged = undefined;
      leave();
    }
  }

  async #abandon({ attempt }: Step<'abandon'>): Promise<CommitResult> {
    if (this.#staged?.attempt === attempt) {
      this.#staged = undefined;
      await this.#clearSpaces();
    }
    return { outcome: 'committed', ...this.#unchanged };
  }

  /** Returns whether etcd has exactly the records that the swap names. */
  async #holds(space: number, { records, digest }: Step<'swap'>): Promise<boolean> {
    let [count, sum] = [0, emptyDigest];
    for await (const rows of this.#pages(space))
      for (const { key, value } of rows) {
        const kind = this.#parts.keys.kindOf(key);
        const record = decodeRecord(value);
        if (kind?.kind !== 'record' || record === undefined) return false;
        sum = addToDigest(sum, recordDigest({ path: kind.path, value: record.value, revision: 0 }));
        count += 1;
      }
    return count === records && sum === digest;
  }

  /** Deletes what a restore has replaced, and what an abandoned one has left. */
  async #clearSpaces(): Promise<void> {
    const { space } = this.#parts.feed.copy;
    const unread = this.#unread;
    for (const other of [space - 1, space + 1].filter((one) => one >= 0))
      await this.#again(() => this.#clearSpace(other, unread));
  }

  /** Deletes page by page, which keeps each revision small. */
  async #clearSpace(space: number, unread: EtcdCompare): Promise<void> {
    const { writes } = this.#parts;
    for await (const rows of this.#pages(space)) {
      const [first, last] = [rows[0], rows.at(-1)];
      if (first !== undefined && last !== undefined)
        await writes.write([{ kind: 'delete', key: first.key, end: `${last.key}\0` }], [unread]);
    }
  }

  /** Changes a space that no node reads. Does it again if the outcome is unknown, which does no harm there. @throws StoreError */
  async #again(task: () => Promise<void>): Promise<void> {
    const { role } = this.#parts;
    const { since } = role;
    for (let attempt = 1; ; attempt++) {
      try {
        return await task();
      } catch (error) {
        const isUnknown = error instanceof StoreError && error.code === 'outcome_unknown';
        if (!isUnknown || attempt === attemptsMax) throw error;
        await role.settledRevision(); // from now on, the attempt has taken effect or never will
        if (role.since !== since) throw error;
      }
    }
  }

  async *#pages(space: number): AsyncGenerator<readonly EtcdRow[]> {
    const { etcd, keys } = this.#parts;
    try {
      // Not pinned: deleting all of them may take longer than etcd keeps a revision.
      for await (const { rows } of pagesOf(etcd, { ...keys.records(space), limit: pageRows, isPinned: false })) yield rows;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      throw new StoreError('busy', `the records of a restore could not be read: ${error.message}`, { cause: error });
    }
  }
}
