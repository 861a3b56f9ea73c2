import type { DiskPart, StorageRun } from '@transitd/raft-sim';
import type { DiskOperation } from '../directory/memory-disk.ts';

/** The operations that take time on a real disk; all others only touch the page cache. */
const waiting: ReadonlySet<DiskOperation> = new Set(['read', 'sync', 'syncDirectory']);
const failing: ReadonlySet<DiskOperation> = new Set(['write', 'sync', 'syncDirectory']);

/** The disks of one incarnation of a node: simulation events complete their operations, on the node's own clock. */
export class HeapDevices {
  readonly #run: StorageRun;
  #error: Error | undefined;
  #syncError: Error | undefined;

  constructor(run: StorageRun) {
    this.#run = run;
  }

  /** Makes the next write or sync fail, and all later ones. */
  fail(error: Error): void {
    this.#error = error;
  }

  /** Makes the next sync of a file fail, and only that one. */
  failSync(error: Error): void {
    this.#syncError = error;
  }

  /** Ends the failure of the disk. A storage that has already met the failure stays closed. */
  mend(): void {
    this.#error = undefined;
    this.#syncError = undefined;
  }

  /** For `MemoryDisk.before`. */
  async before(operation: DiskOperation, path: string): Promise<void> {
    if (waiting.has(operation)) await this.wait(partOf(path));
    if (this.#error !== undefined && failing.has(operation)) throw this.#error;
    const error = operation === 'sync' ? this.#syncError : undefined;
    if (error === undefined) return;
    this.#syncError = undefined;
    throw error;
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
