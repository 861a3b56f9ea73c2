// Faults of a node's clock: libfaketime moves the wall clock by an offset from a file; the monotonic clock continues.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Fault } from '../cluster/harness/faults.ts';

const libraries = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1',
];

/** Keeps one offset file for each node. */
export class Clocks {
  readonly #folder = mkdtempSync(join(tmpdir(), 'transitd-clocks-'));
  readonly #library: string;

  /** @throws if libfaketime is not installed */
  constructor() {
    const library = libraries.find((file) => existsSync(file));
    if (library === undefined) throw new Error('libfaketime is not installed: Debian has it in the package libfaketime');
    this.#library = library;
  }

  /** Returns the environment that makes this node read its offset file. */
  env(name: string): Record<string, string> {
    this.#set(name, 0);
    return {
      LD_PRELOAD: this.#library,
      FAKETIME_TIMESTAMP_FILE: this.#file(name),
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  /** Moves the node's wall clock by `seconds`, and back. */
  jump(seconds: number): Fault {
    return {
      what: `has its wall clock moved by ${seconds} s`,
      strike: async (_, { name }) => this.#set(name, seconds),
      mend: async (_, { name }) => this.#set(name, 0),
    };
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #file(name: string): string {
    return join(this.#folder, name);
  }

  #set(name: string, seconds: number): void {
    writeFileSync(this.#file(name), `${seconds < 0 ? '' : '+'}${seconds}s\n`);
  }
}
