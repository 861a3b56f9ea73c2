import type { Columns } from './columns.ts';

/** Consecutive items of a batch, for another thread of this process that holds the same keys. */
export interface BatchPart {
  readonly mountId: string;
  /** First part of the mount's ciphertext strings, which may have been changed. */
  readonly prefix: string;
  readonly key: KeyState;
  /** Name of the operation. */
  readonly operation: string;
  /** Position of the first item in the batch; some error texts contain positions. */
  readonly first: number;
  readonly items: Columns;
}

/** One state of one key. A name alone may belong to another key by now. */
export interface KeyState {
  readonly name: string;
  readonly id: string;
  readonly revision: number;
}

/** A thread that is idle, as far as known. */
export interface IdleThread {
  /**
   * Returns the results of the part's items, in their order; undefined if the thread does not process the part. Never rejects, and may
   * never resolve.
   */
  run(part: BatchPart): Promise<Columns | undefined>;
}

/** Returns the threads that may take a part of a batch now. */
export type OtherThreads = () => readonly IdleThread[];
