/** Random numbers repeatable from a seed (Marsaglia: Xorshift RNGs, 2003), for the random part of election timeouts. Not for secrets. */
export class Xorshift32 {
  #state: number;

  constructor(seed: number) {
    // The golden ratio separates small seeds; a state of 0 would stay 0.
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ 0x6a09e667) >>> 0 || 1;
  }

  /** Returns a uniformly distributed integer in [1, 2^32). */
  next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state;
  }
}
