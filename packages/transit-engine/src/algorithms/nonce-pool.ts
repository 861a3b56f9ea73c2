import { randomFillSync } from 'node:crypto';

/** Length of every nonce in bytes: 96 bits (NIST SP 800-38D §8.2.2, RFC 8439 §2.8). */
export const nonceBytes = 12;
const noncesPerFill = 512;

/**
 * Random nonces, drawn from the operating system in bulk. Each nonce is handed out once, and its bytes are never overwritten. A pool must
 * not be shared between processes.
 */
export class NoncePool {
  #pool = new Uint8Array(0);
  #next = 0;

  take(): Uint8Array {
    if (this.#next === this.#pool.length) {
      this.#pool = randomFillSync(new Uint8Array(nonceBytes * noncesPerFill));
      this.#next = 0;
    }
    const begin = this.#next;
    this.#next += nonceBytes;
    // A view, not a copy: node:crypto moves the bytes of a small array of its own to new memory outside the heap.
    return this.#pool.subarray(begin, this.#next);
  }
}
