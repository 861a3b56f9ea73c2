import module from 'node:module';
import v8 from 'node:v8';

/**
 * Limits the growth of the heaps of all threads while none of them loads its code: V8 then collects all of a heap when it is twice as large
 * as after the last such collection, instead of up to four times (README.md). V8 refuses code that was compiled under other flags, Node's
 * own included, so a thread that loads under this flag compiles everything.
 */
export class HeapGrowth {
  /** The number of threads that load their code; at first the main thread does. */
  #loading = 1;

  /** A thread starts to load its code. */
  threadLoads(): void {
    this.#loading += 1;
    v8.setFlagsFromString('--heap-growing-percent=0'); // V8's default
  }

  /** A thread has loaded its code, or has ended before. */
  threadLoaded(): void {
    this.#loading -= 1;
    if (this.#loading > 0) return;
    module.flushCompileCache(); // stored later, it would be refused at the next start
    v8.setFlagsFromString('--heap-growing-percent=100');
  }
}
