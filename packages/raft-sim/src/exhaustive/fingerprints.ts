import type { State } from './level.ts';

const SLOTS_AT_FIRST = 2 ** 12;
const FILLED_MAX = 0.75;

/**
 * States by 64-bit fingerprints: eight bytes each, where the states themselves would take a hundred. Two states with the same fingerprint
 * count as one, and anything that follows only from the second is missed. The probability that n states contain such a pair is about n² /
 * 2^65, if fingerprints are random: 3 in 10,000 for a hundred million.
 */
export class Fingerprints {
  /** Open addressing with linear probing, two 32-bit halves per slot; an empty slot is 0, 0. */
  #slots = new Uint32Array(2 * SLOTS_AT_FIRST);
  #size = 0;
  readonly #print: [high: number, low: number] = [0, 0];

  get size(): number {
    return this.#size;
  }

  /** Adds a state; returns whether it was new. */
  add(state: State): boolean {
    fingerprint(state, this.#print);
    if (!place(this.#slots, this.#print)) return false;
    this.#size += 1;
    if (2 * this.#size > FILLED_MAX * this.#slots.length) this.#grow();
    return true;
  }

  #grow(): void {
    const slots = new Uint32Array(2 * this.#slots.length);
    for (let at = 0; at < this.#slots.length; at += 2) {
      const [high, low] = [this.#slots[at] ?? 0, this.#slots[at + 1] ?? 0];
      if (high !== 0 || low !== 0) place(slots, [high, low]);
    }
    this.#slots = slots;
  }
}

function place(slots: Uint32Array, [high, low]: readonly [number, number]): boolean {
  const mask = slots.length / 2 - 1;
  for (let slot = low & mask; ; slot = (slot + 1) & mask) {
    const [h, l] = [slots[2 * slot], slots[2 * slot + 1]];
    if (h === high && l === low) return false;
    if (h !== 0 || l !== 0) continue;
    slots[2 * slot] = high;
    slots[2 * slot + 1] = low;
    return true;
  }
}

/**
 * For a given number, each round maps the 64 bits one to one. So two states become equal only if a later number cancels their difference.
 */
function fingerprint(state: State, print: [high: number, low: number]): void {
  let a = 0x9e3779b9 ^ state.length;
  let b = 0x85ebca6b;
  for (const number of state) {
    a = Math.imul(a ^ number, 0xcc9e2d51);
    a = ((a << 15) | (a >>> 17)) + b;
    b = Math.imul(b ^ a, 0x1b873593);
    b = ((b << 13) | (b >>> 19)) + a;
  }
  a = mixed(a ^ (b >>> 7));
  b = mixed(b ^ a);
  a = mixed(a + b);
  print[0] = a >>> 0;
  // 0, 0 marks an empty slot.
  print[1] = a === 0 && b === 0 ? 1 : b >>> 0;
}

/** The last step of MurmurHash3, 32 bits. */
function mixed(number: number): number {
  let x = number;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return x ^ (x >>> 16);
}
