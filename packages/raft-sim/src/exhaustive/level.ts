/** A state: a sequence of 1 to 2^16 - 1 integers, each from 0 to 2^16 - 1. Equal sequences must mean that the same can happen next. */
export type State = readonly number[];

const CHUNK_NUMBERS = 2 ** 20;
const NUMBER_MAX = 2 ** 16 - 1;

/** The states of one depth in sequence, two bytes a number: memory is what limits an exploration. */
export class Level {
  /** States in sequence, each after its length; 0 ends a chunk. */
  readonly #chunks: Uint16Array[] = [];
  #used = CHUNK_NUMBERS;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(state: State): void {
    if (state.length === 0 || state.length > NUMBER_MAX) throw new RangeError('a state is empty or too long');
    const chunk = this.#chunkFor(state.length);
    chunk[this.#used++] = state.length;
    for (const number of state) {
      if (number > NUMBER_MAX) throw new RangeError('one core has too many states, or there are too many messages');
      chunk[this.#used++] = number;
    }
    this.#size += 1;
  }

  /** Yields each state once, in order; releases what was read. */
  *drain(): Generator<State> {
    for (let chunk = this.#chunks.shift(); chunk !== undefined; chunk = this.#chunks.shift()) {
      let at = 0;
      for (let length = chunk[0] ?? 0; length > 0; length = chunk[at] ?? 0) {
        yield Array.from(chunk.subarray(at + 1, at + 1 + length));
        at += 1 + length;
      }
    }
    this.#size = 0;
    this.#used = CHUNK_NUMBERS;
  }

  #chunkFor(length: number): Uint16Array {
    const last = this.#chunks.at(-1);
    if (last !== undefined && this.#used + length < CHUNK_NUMBERS) return last;
    const chunk = new Uint16Array(CHUNK_NUMBERS);
    this.#chunks.push(chunk);
    this.#used = 0;
    return chunk;
  }
}

/** A sequence of integers below 2^32. */
export class Column {
  #numbers = new Uint32Array(1024);
  #size = 0;

  push(number: number): void {
    if (this.#size === this.#numbers.length) {
      const larger = new Uint32Array(2 * this.#size);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    this.#numbers[this.#size++] = number;
  }

  at(position: number): number {
    const number = position < this.#size ? this.#numbers[position] : undefined;
    if (number === undefined) throw new RangeError(`the column has no ${position}`);
    return number;
  }
}
