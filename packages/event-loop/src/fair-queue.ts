/** `beyond the share`: this caller can take nothing now, but others may; `full`: nobody can. */
export type Taken = 'taken' | 'beyond the share' | 'full';

/**
 * A queue that is fair by caller: callers take turns, each caller's items keep their order, and no caller waits for more than one item
 * of each other caller. When the queue is full, the caller with the most items loses its newest one.
 */
export class FairQueue<Item> {
  readonly #waitingMax: number;
  /** Items by caller; the next caller comes first. */
  readonly #items = new Map<string, Set<Item>>();
  #size = 0;

  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds an item after its caller's other items. Returns the item that a full queue drops, which may be the new one. */
  add(caller: string, item: Item): Item | undefined {
    this.#items.set(caller, (this.#items.get(caller) ?? new Set()).add(item));
    this.#size += 1;
    if (this.#size <= this.#waitingMax) return undefined;
    let most: readonly [caller: string, items: ReadonlySet<Item>] = [caller, this.#items.get(caller) ?? new Set()];
    for (const entry of this.#items) if (entry[1].size > most[1].size) most = entry;
    const lost = [...most[1]].at(-1) ?? item;
    this.delete(most[0], lost);
    return lost;
  }

  /** Removes an item. Returns whether it was in the queue. */
  delete(caller: string, item: Item): boolean {
    const items = this.#items.get(caller);
    if (items?.delete(item) !== true) return false;
    this.#size -= 1;
    if (items.size === 0) this.#items.delete(caller);
    return true;
  }

  /** Removes and returns the next item of the first caller that can take what it waits for; undefined if none can. */
  take(tryTake: (caller: string, item: Item) => Taken = () => 'taken'): Item | undefined {
    for (const [caller, items] of this.#items) {
      const [item] = items;
      if (item === undefined) continue;
      const taken = tryTake(caller, item);
      if (taken === 'full') return undefined;
      if (taken === 'beyond the share') continue;
      this.delete(caller, item);
      if (items.size > 0) {
        this.#items.delete(caller);
        this.#items.set(caller, items);
      }
      return item;
    }
    return undefined;
  }
}
