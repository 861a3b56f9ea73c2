import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { endProcess } from './end-process.ts';

const pollMs = 10;

/** Calls of the file system and of the resolver of names. They occupy threads of libuv's pool. */
const isBlockingCall = (resource: string): boolean => /^(FSReq|GetAddrInfoReq|GetNameInfoReq)/.test(resource);

/** Ends this process after its work is done. It follows all threads that start after it was made. */
export class OrdinaryEnd {
  readonly #threads = new Set<Worker>();

  constructor() {
    subscribe('worker_threads', (message) => {
      const { worker } = message as { readonly worker: Worker };
      this.#threads.add(worker);
      worker.once('exit', () => this.#threads.delete(worker));
    });
  }

  /**
   * Ends the process with this exit code. `process.exit` would wait for each call that hangs, of a PKCS#11 token, a disk or a name server:
   * so if one has not ended in time, {@link endProcess} ends the process.
   */
  async end(code: number, withinMs = 1000): Promise<never> {
    const lateMs = performance.now() + withinMs;
    for (const thread of this.#threads) void thread.terminate();
    while (this.#mayHang) {
      if (performance.now() >= lateMs) endProcess(code);
      await delay(pollMs);
    }
    process.exit(code);
  }

  get #mayHang(): boolean {
    return this.#threads.size > 0 || process.getActiveResourcesInfo().some(isBlockingCall);
  }
}
