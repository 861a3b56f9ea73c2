import type { StatsFs } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { sharedRun } from '@transitd/event-loop';

/** Space of a file system, in bytes. */
export interface DiskSpaceView {
  readonly totalBytes: number;
  /** Free space, with what only the superuser may use. */
  readonly freeBytes: number;
  /** Free space for this process. */
  readonly availableBytes: number;
}

/** A disk that takes longer is reported without its space: a report must come from a node whose disk hangs too. */
const waitMsDefault = 300;

/**
 * Reads the space of the data disk. Callers share one call at a time: each call on a disk that hangs holds a thread of the pool, of which
 * other files, name look-ups and cryptography need the rest.
 */
export class DataDisk {
  readonly #folder: string;
  readonly #ask: (folder: string) => Promise<StatsFs>;
  readonly #reading = sharedRun(() => this.#read());

  constructor(folder: string, ask: (folder: string) => Promise<StatsFs> = statfs) {
    this.#folder = folder;
    this.#ask = ask;
  }

  /** Returns the space; undefined if the file system does not report it within this time. */
  space(waitMs = waitMsDefault): Promise<DiskSpaceView | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(resolve, waitMs, undefined);
    return Promise.race([this.#reading(), late]).finally(() => clearTimeout(timer));
  }

  async #read(): Promise<DiskSpaceView | undefined> {
    const found = await this.#ask(this.#folder).catch(() => undefined);
    if (found === undefined) return undefined;
    const { blocks, bfree, bavail, bsize } = found;
    return { totalBytes: blocks * bsize, freeBytes: bfree * bsize, availableBytes: bavail * bsize };
  }
}
