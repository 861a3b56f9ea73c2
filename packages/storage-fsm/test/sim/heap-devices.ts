import type { DiskPart, StorageRun } from '@transitd/raft-core/sim';
import type { DiskOperation } from '../directory/memory-disk.ts';

/** What takes its time on a real disk; all else is in the system's memory. */
const waiting: ReadonlySet<DiskOperation> = new Set(['read', 'sync', 'syncDirectory']);
const failing: ReadonlySet<DiskOperation> = new Set(['write', 'sync', 'syncDirectory']);

/** The devices of one run of a node: what they are asked for completes by events of the simulation, in the node's own time. */
export class HeapDevices {
  readonly #run: StorageRun;
  #error: Error | undefined;

  constructor(run: StorageRun) {
    this.#run = run;
  }

  /** The next write or sync fails, and all after it. */
  fail(error: Error): void {
    this.#error = error;
  }

  /** A failure that no write has met yet ends; a storage that has met it stays closed all the same. */
  mend(): void {
    this.#error = undefined;
  }

  /** For `MemoryDisk.before`. */
  async before(operation: DiskOperation, path: string): Promise<void> {
    if (waiting.has(operation)) await this.wait(partOf(path));
    if (this.#error !== undefined && failing.has(operation)) throw this.#error;
  }

  wait(part: DiskPart): Promise<void> {
    const { process, delayMs } = this.#run;
    return new Promise((resolve) => process.after(delayMs(part), resolve));
  }
}

function partOf(path: string): DiskPart {
  if (path.endsWith('/node.state')) return 'node';
  return path.includes('/state') ? 'state' : 'log';
}
