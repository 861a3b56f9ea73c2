import type { Random } from '@transitd/raft-core';

/**
 * Random numbers repeatable from a seed: xoshiro128** (Blackman, Vigna: Scrambled linear pseudorandom number generators, 2018), its state
 * filled from the seed by the mixing steps of MurmurHash3. Not for secrets.
 */
export class SimRandom implements Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number) {
    this.#a = mix(seed + 0x9e3779b9);
    this.#b = mix(seed + 2 * 0x9e3779b9);
    this.#c = mix(seed + 3 * 0x9e3779b9);
    this.#d = mix(seed + 4 * 0x9e3779b9);
  }

  uint32(): number {
    const [a, b, c, d] = [this.#a, this.#b, this.#c, this.#d];
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
    const c2 = c ^ a;
    const d2 = d ^ b;
    this.#a = a ^ d2;
    this.#b = b ^ c2;
    this.#c = c2 ^ (b << 9);
    this.#d = rotate(d2, 11);
    return result;
  }

  /** Uniform in [0, bound), well enough for choosing among few. */
  below(bound: number): number {
    return this.uint32() % bound;
  }

  /** Returns true with the given `probability`, in [0, 1]. Draws a number even if the answer is certain, so that streams stay in step. */
  chance(probability: number): boolean {
    return this.uint32() < probability * 2 ** 32;
  }

  /** Returns an integer from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /** @throws RangeError for no items */
  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(Math.max(1, items.length))];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }
}

const rotate = (x: number, bits: number): number => (x << bits) | (x >>> (32 - bits));

function mix(x: number): number {
  const once = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) >>> 0;
}
