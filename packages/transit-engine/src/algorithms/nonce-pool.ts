import { randomFillSync } from 'node:crypto';

/** Length of every nonce in bytes: 96 bits (NIST SP 800-38D §8.2.2, RFC 8439 §2.8). */
export const nonceBytes = 12;
const noncesPerFill = 512;

/**
 * Random nonces, drawn from the operating system in bulk. Each nonce is handed out once. A pool must not be shared between
 * processes.
 */
export class NoncePool {
  readonly #pool = new Uint8Array(nonceBytes * noncesPerFill);
  #next = this.#pool.length;

  take(): Uint8Array {
    if (this.#next === this.#pool.length) {
      randomFillSync(this.#pool);
      this.#next = 0;
    }
    const end = this.#next + nonceBytes;
    const nonce = this.#pool.slice(this.#next, end);
    this.#next = end;
    return nonce;
  }
}
