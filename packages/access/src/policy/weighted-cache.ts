/** A map with a bound on the total weight of its values. The oldest entries are evicted first. */
export class WeightedCache<T> {
  readonly #weightMax: number;
  readonly #entries = new Map<string, { readonly value: T; readonly weight: number }>();
  #weight = 0;
  #evictedWeight = 0;

  constructor(weightMax: number) {
    this.#weightMax = weightMax;
  }

  /** Total weight of all values that were ever evicted, deleted or too heavy to keep. */
  get evictedWeight(): number {
    return this.#evictedWeight;
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Adds a value. A value heavier than the bound is not kept. */
  set(key: string, value: T, weight: number): void {
    this.delete(key);
    if (weight > this.#weightMax) {
      this.#evictedWeight += weight;
      return;
    }
    for (const oldest of this.#entries.keys()) {
      if (this.#weight + weight <= this.#weightMax) break;
      this.delete(oldest);
    }
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
  }

  delete(key: string): void {
    const weight = this.#entries.get(key)?.weight ?? 0;
    this.#weight -= weight;
    this.#evictedWeight += weight;
    this.#entries.delete(key);
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys();
  }

  clear(): void {
    this.#entries.clear();
    this.#evictedWeight += this.#weight;
    this.#weight = 0;
  }
}
