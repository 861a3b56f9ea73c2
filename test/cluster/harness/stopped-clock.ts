// A monotonic clock of one process that stands still while the process does, as in a suspended virtual machine.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class StoppedClock {
  readonly #folder = mkdtempSync(join(tmpdir(), 'transitd-clock-'));
  readonly #lagFile = join(this.#folder, 'lag');
  #lagNs = 0n;

  constructor() {
    this.#write();
    execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', this.#library, join(import.meta.dirname, 'stopped-clock.c'), '-ldl']);
  }

  /** Variables for the environment of the process. */
  get env(): Readonly<Record<string, string>> {
    return { LD_PRELOAD: this.#library, STOPPED_CLOCK: this.#lagFile };
  }

  /** Makes the monotonic clock of the process lag by `ms` milliseconds. Call it while the process is stopped. */
  stoodStill(ms: number): void {
    this.#lagNs += BigInt(Math.floor(ms * 1e6));
    this.#write();
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #library(): string {
    return join(this.#folder, 'stopped-clock.so');
  }

  /** Overwrites the file in place, because the process has mapped it. */
  #write(): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(this.#lagNs);
    writeFileSync(this.#lagFile, bytes, { flag: this.#lagNs === 0n ? 'w' : 'r+' });
  }
}
