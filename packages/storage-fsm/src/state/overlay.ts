import type { LogIndex } from '@transitd/raft-core';
import { comparePaths } from '../store/path.ts';
import { inRange, type PendingRow } from '../store/range.ts';
import type { RangeQuery } from '../store/store.ts';

/** The newest write to a path; `value` is null for a deletion. */
export interface Pending {
  readonly value: Uint8Array | null;
  readonly revision: LogIndex;
}

/** Estimated memory of a pending write's map entry, strings and buffer headers, in bytes. */
const perRecordBytes = 200;

/** Applied writes that are not yet known to be on disk. Every read consults them before `level`. */
export class Overlay {
  readonly #pending = new Map<string, Pending>();
  #bytes = 0;

  /** Approximate memory use in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  get(path: string): Pending | undefined {
    return this.#pending.get(path);
  }

  set(path: string, pending: Pending): void {
    this.#drop(path);
    this.#pending.set(path, pending);
    this.#bytes += bytesOf(path, pending);
  }

  /** Returns a copy of all current writes, for one flush. */
  capture(): ReadonlyMap<string, Pending> {
    return new Map(this.#pending);
  }

  /** Drops the writes that a flush has stored, except paths that were written again after `flushed` was captured. */
  dropFlushed(flushed: ReadonlyMap<string, Pending>): void {
    for (const [path, pending] of flushed) {
      if (this.#pending.get(path) === pending) this.#drop(path);
    }
  }

  /** Returns the writes that a query covers, ascending by path; includes deletions, which hide stored records. */
  within(query: RangeQuery): PendingRow[] {
    const rows: PendingRow[] = [];
    for (const [path, pending] of this.#pending) if (inRange(query, path)) rows.push({ path, ...pending });
    return rows.sort((a, b) => comparePaths(a.path, b.path));
  }

  #drop(path: string): void {
    const pending = this.#pending.get(path);
    if (pending === undefined) return;
    this.#pending.delete(path);
    this.#bytes -= bytesOf(path, pending);
  }
}

const bytesOf = (path: string, { value }: Pending): number => perRecordBytes + path.length + (value?.length ?? 0);
