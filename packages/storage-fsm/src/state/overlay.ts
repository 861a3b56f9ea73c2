import type { LogIndex } from '@transitd/raft-core';
import { comparePaths } from '../store/path.ts';
import { inRange, type PendingRow } from '../store/range.ts';
import type { RangeQuery } from '../store/store.ts';

/** What a path was last set to: a record, or with `value` null its absence. */
export interface Pending {
  readonly value: Uint8Array | null;
  readonly revision: LogIndex;
}

/** Map entry, strings and buffer headers that come with each pending write, in bytes; an estimate. */
const perRecordBytes = 200;

/** Applied writes that are not known to be on disk. Whoever reads looks here before `level`. */
export class Overlay {
  readonly #pending = new Map<string, Pending>();
  #bytes = 0;

  /** Memory that is held, in bytes, about. */
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

  /** All writes as of now: what one flush takes to disk. */
  capture(): ReadonlyMap<string, Pending> {
    return new Map(this.#pending);
  }

  /** Forgets what is on disk by now, but for what was written again since `flushed` was captured. */
  settle(flushed: ReadonlyMap<string, Pending>): void {
    for (const [path, pending] of flushed) {
      if (this.#pending.get(path) === pending) this.#drop(path);
    }
  }

  /** The writes that a range covers, ascending by path; deletions included, since they hide stored records. */
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
