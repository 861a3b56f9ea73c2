import { randomBytes } from 'node:crypto';
import { open, stat, statfs, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@transitd/raft-core';
import { unreferencedTimer } from '../timer.ts';

export interface DiskReserveOptions {
  /** Space to keep free, in bytes. The smaller of this and `reserveShare` applies, but never less than `growthBytes`. */
  readonly reserveBytes?: number;
  /** Space to keep free, as a share of the whole disk. */
  readonly reserveShare?: number;
  /** The minimum reserve in bytes, however small the disk is. */
  readonly growthBytes?: number;
  /** Size of the `ballast` file, which an operator may delete to make room on a full disk; 0 for no file. */
  readonly ballastBytes?: number;
  /** Schedules the samples; by default a timer that does not keep the process alive. */
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

const defaultReserveBytes = 512 * mebibyte;

/**
 * The bytes that log and state may need at the same time, before they notice that the disk is full: a log batch and the step by which its
 * file grows (8 and 4 MiB), one of LevelDB's write-ahead logs and the table flushed from it (4 and 4 MiB), and the tables that a
 * compaction writes before it removes the old ones (28 MiB).
 */
const growthBytesMin = 48 * mebibyte;

type Reserve = Pick<DiskReserveOptions, 'reserveBytes' | 'reserveShare' | 'growthBytes'>;

/** Returns the minimum reserve. A configured reserve of 0 disables it too. */
const growthOf = ({ reserveBytes, growthBytes = growthBytesMin }: Reserve): number => (reserveBytes === 0 ? 0 : growthBytes);

/** Returns the reserve on a disk of this size. */
export const reserveIn = (totalBytes: number, reserve: Reserve = {}): number => {
  const { reserveBytes = defaultReserveBytes, reserveShare = 0.05 } = reserve;
  return Math.max(growthOf(reserve), Math.min(reserveBytes, reserveShare * totalBytes));
};

/** Returns whether the share of the disk is less than what was configured: the default is meant for disks of any size. */
export const isCapped = (totalBytes: number, reserveBytes: number): boolean =>
  reserveBytes !== defaultReserveBytes && reserveIn(totalBytes, { reserveBytes }) < reserveBytes;

/** Returns true when less than the reserve is free: the node then refuses proposals, long before a log write fails. */
export const belowReserve = ({ freeBytes, totalBytes }: DiskSpace, reserve: Reserve = {}): boolean =>
  freeBytes < reserveIn(totalBytes, reserve);

/** Samples the free space of the data disk several times a second, never on the write path. */
export class DiskReserve {
  readonly #directory: string;
  readonly #options: DiskReserveOptions;
  readonly #stopTimer: () => void;
  #totalBytes: number | undefined;
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

  /** Size of the disk in the newest sample, in bytes; undefined if it could not be read. */
  get totalBytes(): number | undefined {
    return this.#totalBytes;
  }

  /** Returns true if the newest sample was below the reserve. A disk whose free space cannot be read counts as low. */
  diskLow(): boolean {
    return this.#low;
  }

  /**
   * Returns whether the newest sample left room for more entries from the leader. A follower must accept those even below its reserve, so
   * this is false only when less than half of `growthBytes` is free. A disk whose free space cannot be read counts as having room: its
   * writes will report the error.
   */
  hasRoom(): boolean {
    return this.#hasRoom;
  }

  /** Stops sampling; resolves when a sample and the creation of the ballast file have finished. */
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
      this.#totalBytes = space.totalBytes;
      this.#low = belowReserve(space, this.#options);
      this.#hasRoom = space.freeBytes >= growthOf(this.#options) / 2;
      const withBallast = { ...space, freeBytes: space.freeBytes - ballastBytes };
      if (ballastBytes > 0 && !belowReserve(withBallast, this.#options))
        this.#ballast ??= makeBallast(join(this.#directory, 'ballast'), ballastBytes);
    } catch {
      this.#totalBytes = undefined;
      this.#low = true;
      this.#hasRoom = true;
    }
  }
}

/** Runs once per start, and only if there is no ballast file: after an operator deletes it to make room, it must not come back at once. */
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
    await unlink(path).catch(() => undefined); // the ballast is a convenience: the node runs without it
  }
}

async function measureDisk(directory: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}
