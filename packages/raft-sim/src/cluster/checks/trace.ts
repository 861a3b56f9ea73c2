/** One event as numbers and short words: cheap to note, and equal in equal runs. */
export interface TraceLine {
  readonly atMs: number;
  readonly what: string;
  readonly node: number;
  readonly facts: readonly (number | string | boolean)[];
}

const KEPT = 256;

/** A running hash over all events of a run, and the newest of them as text. */
export class Trace {
  #high = 0x811c9dc5;
  #low = 0x01234567;
  #lines = 0;
  readonly #ring: TraceLine[] = [];
  /** Words repeat, so each is hashed once. */
  readonly #words = new Map<string, number>();
  readonly #listener: ((line: TraceLine) => void) | undefined;

  constructor(listener?: (line: TraceLine) => void) {
    this.#listener = listener;
  }

  note(atMs: number, what: string, node: number, ...facts: readonly (number | string | boolean)[]): void {
    this.#mix(Math.trunc(atMs * 1000));
    this.#text(what);
    this.#mix(node);
    for (const fact of facts) {
      if (typeof fact === 'string') this.#text(fact);
      else this.#mix(Number(fact));
    }
    const line: TraceLine = { atMs, what, node, facts };
    this.#ring[this.#lines % KEPT] = line;
    this.#lines += 1;
    this.#listener?.(line);
  }

  /** 16 hexadecimal digits; equal runs have equal hashes. */
  get hash(): string {
    const digits = (lane: number): string => (lane >>> 0).toString(16).padStart(8, '0');
    return digits(this.#high) + digits(this.#low);
  }

  /** The newest lines, oldest first. */
  last(count: number): readonly string[] {
    const kept = Math.min(count, this.#lines, KEPT);
    return Array.from({ length: kept }, (_, i) => this.#ring[(this.#lines - kept + i) % KEPT]).map((line) =>
      line === undefined ? '' : formatLine(line),
    );
  }

  #text(text: string): void {
    let word = this.#words.get(text);
    if (word === undefined) {
      word = 0;
      for (let i = 0; i < text.length; i++) word = Math.imul(word ^ text.charCodeAt(i), 0x01000193);
      this.#words.set(text, word);
    }
    this.#mix(word);
  }

  #mix(value: number): void {
    const low = value | 0;
    this.#high = Math.imul(this.#high ^ low, 0x01000193);
    this.#low = Math.imul(this.#low ^ (low + Math.trunc(value / 2 ** 32)), 0x85ebca6b) ^ (this.#high >>> 15);
  }
}

export const formatLine = ({ atMs, what, node, facts }: TraceLine): string =>
  `${atMs.toFixed(3).padStart(12)} ${node === 0 ? '      ' : `node ${node}`.padEnd(7)} ${what} ${facts.join(' ')}`;
