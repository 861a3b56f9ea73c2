/** A cache whose memory counts toward a {@link CacheBudget}. */
export interface BudgetedCache {
  /** Approximate bytes that it holds. */
  readonly bytes: number;
  /** Drops what was used least recently. Called only while `bytes` is above 0. */
  giveUp(): void;
}

/**
 * Approximate bytes that several caches may hold together. When they hold more, the largest gives up memory: a mount with many keys does
 * not push out the few keys of another mount.
 */
export class CacheBudget {
  readonly bytesMax: number;
  /** The bytes of each cache when they were last looked at. A cache reports when it grows, not when it shrinks. */
  readonly #known = new Map<BudgetedCache, number>();
  /** Sum of the known bytes: never less than what the caches hold. */
  #bytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  add(cache: BudgetedCache): void {
    this.#look(cache);
  }

  remove(cache: BudgetedCache): void {
    this.#bytes -= this.#known.get(cache) ?? 0;
    this.#known.delete(cache);
  }

  /** Call this function after a cache has grown. */
  grew(cache: BudgetedCache): void {
    if (!this.#known.has(cache)) return; // closed in the meantime
    this.#look(cache);
    if (this.#bytes <= this.bytesMax) return;
    for (const each of this.#known.keys()) this.#look(each);
    while (this.#bytes > this.bytesMax) {
      const largest = this.#largest();
      largest.giveUp();
      this.#look(largest);
    }
  }

  #look(cache: BudgetedCache): void {
    const { bytes } = cache;
    this.#bytes += bytes - (this.#known.get(cache) ?? 0);
    this.#known.set(cache, bytes);
  }

  #largest(): BudgetedCache {
    const [first, ...others] = this.#known;
    if (first === undefined) throw new Error('a budget is exceeded without a cache');
    return others.reduce((largest, each) => (each[1] > largest[1] ? each : largest), first)[0];
  }
}

/** The memory of all engines of one thread: for decoded keys, and for lists of key names. */
export interface EngineCaches {
  readonly keys: CacheBudget;
  readonly names: CacheBudget;
}

const keysBytesMax = 64 * 1024 * 1024;
const namesBytesMax = 48 * 1024 * 1024;

/** Divides the memory of a node. @param threads - number of threads of the node, each of which has engines for all mounts */
export const engineCaches = (threads = 1): EngineCaches => ({
  keys: new CacheBudget(Math.floor(keysBytesMax / threads)),
  names: new CacheBudget(Math.floor(namesBytesMax / threads)),
});
