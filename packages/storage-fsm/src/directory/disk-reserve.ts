import { randomBytes } from 'node:crypto';
import { open, stat, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@transitd/raft-core';
import { unreferencedTimer } from '../timer.ts';

export interface DiskReserveOptions {
  /** Space to keep free: the smaller of the two, in bytes and as a share of the whole disk, but never less than `growthBytes`. */
  readonly reserveBytes?: number;
  readonly reserveShare?: number;
  /** The least reserve, in bytes, however small the disk is. */
  readonly growthBytes?: number;
  /** Size of the file that an operator deletes when the disk is full; 0 for none. */
  readonly ballastBytes?: number;
  /** Runs the samples; by default a timer that does not keep the process alive. */
  readonly every?: Clock['every'];
  /** Free and total bytes of the disk that holds `directory`. */
  readonly measure?: (directory: string) => Promise<DiskSpace>;
}

export interface DiskSpace {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

const mebibyte = 1024 * 1024;
const sampleIntervalMs = 200;

/**
 * The bytes that log and state may need at once before they notice that the disk is full: a batch of the log with the step by which its file grows
 * (8 and 4 MiB), a write-ahead file of LevelDB with the table made of it (4 and 4 MiB), and the tables that a compaction writes before it
 * removes the old ones (28 MiB).
 */
export const growthBytesLeast = 48 * mebibyte;

type Reserve = Pick<DiskReserveOptions, 'reserveBytes' | 'reserveShare' | 'growthBytes'>;

/** A reserve of 0 switches the least reserve off too. */
const growthOf = ({ reserveBytes, growthBytes = growthBytesLeast }: Reserve): number => (reserveBytes === 0 ? 0 : growthBytes);

/** True when less than the reserve is free: proposals are refused then, long before a write of the log fails. */
export const belowReserve = ({ freeBytes, totalBytes }: DiskSpace, reserve: Reserve = {}): boolean => {
  const { reserveBytes = 512 * mebibyte, reserveShare = 0.05 } = reserve;
  return freeBytes < Math.max(growthOf(reserve), Math.min(reserveBytes, reserveShare * totalBytes));
};

/** Watches the free space of the data disk, several times a second and never on the write path. */
export class DiskReserve {
  readonly #directory: string;
  readonly #options: DiskReserveOptions;
  readonly #stopTimer: () => void;
  #low = true;
  #hasRoom = true;
  #sampling: Promise<void> | undefined;
  #ballast: Promise<void> | undefined;

  private constructor(directory: string, options: DiskReserveOptions) {
    this.#directory = directory;
    this.#options = options;
    this.#stopTimer = (options.every ?? unreferencedTimer)(sampleIntervalMs, () => this.#sampleOnce());
  }

  /** Resolves after the first sample. */
  static async start(directory: string, options: DiskReserveOptions = {}): Promise<DiskReserve> {
    const reserve = new DiskReserve(directory, options);
    await reserve.#sampleOnce();
    return reserve;
  }

  /** As of the newest sample. A disk that cannot be asked counts as low. */
  diskLow(): boolean {
    return this.#low;
  }

  /**
   * Whether there is room for more entries of a leader, which a follower has to take however low its disk is: false when half of what log
   * and state may need at once is free. As of the newest sample; true for a disk that cannot be asked, whose writes will say what is wrong.
   */
  hasRoom(): boolean {
    return this.#hasRoom;
  }

  /** Resolves when nothing runs any more. */
  async stop(): Promise<void> {
    this.#stopTimer();
    await this.#sampling;
    await this.#ballast;
  }

  #sampleOnce(): Promise<void> {
    this.#sampling ??= this.#sample().finally(() => {
      this.#sampling = undefined;
    });
    return this.#sampling;
  }

  async #sample(): Promise<void> {
    const { measure = measureDisk, ballastBytes = 16 * mebibyte } = this.#options;
    try {
      const space = await measure(this.#directory);
      this.#low = belowReserve(space, this.#options);
      this.#hasRoom = space.freeBytes >= growthOf(this.#options) / 2;
      const withBallast = { ...space, freeBytes: space.freeBytes - ballastBytes };
      if (ballastBytes > 0 && !belowReserve(withBallast, this.#options))
        this.#ballast ??= makeBallast(join(this.#directory, 'ballast'), ballastBytes);
    } catch {
      this.#low = true;
      this.#hasRoom = true;
    }
  }
}

/** Once per start, and only if there is none: while an operator makes room by deleting it, it must not come back. */
async function makeBallast(path: string, bytes: number): Promise<void> {
  if (await stat(path).catch(() => undefined)) return;
  const block = randomBytes(Math.min(bytes, mebibyte)); // random, so that a compressing file system cannot make it small
  try {
    const file = await open(path, 'wx', 0o600);
    try {
      for (let written = 0; written < bytes; written += block.length)
        await file.write(block, 0, Math.min(block.length, bytes - written));
    } finally {
      await file.close();
    }
  } catch {
    await unlink(path).catch(() => undefined); // a convenience: the node runs without it
  }
}

async function measureDisk(directory: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}
