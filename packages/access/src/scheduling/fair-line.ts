/**
 * A waiting line in which callers take turns: each caller's items keep their order, and no caller waits for more than one item of each of
 * the others. When the line is full, the caller with the most items loses its newest one.
 */
export class FairLine<Item> {
  readonly #waitingMax: number;
  /** By caller; the caller whose turn is next comes first. */
  readonly #of = new Map<string, Set<Item>>();
  #size = 0;

  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds an item at the end of its caller's items. Returns the item that the full line lost for it, which may be the item itself. */
  add(caller: string, item: Item): Item | undefined {
    this.#of.set(caller, (this.#of.get(caller) ?? new Set()).add(item));
    this.#size += 1;
    if (this.#size <= this.#waitingMax) return undefined;
    let most: readonly [caller: string, items: ReadonlySet<Item>] = [caller, this.#of.get(caller) ?? new Set()];
    for (const entry of this.#of) if (entry[1].size > most[1].size) most = entry;
    const lost = [...most[1]].at(-1) ?? item;
    this.delete(most[0], lost);
    return lost;
  }

  /** Returns whether the item was in the line. */
  delete(caller: string, item: Item): boolean {
    const items = this.#of.get(caller);
    if (items?.delete(item) !== true) return false;
    this.#size -= 1;
    if (items.size === 0) this.#of.delete(caller);
    return true;
  }

  /** Removes and returns the next item of the first caller that `may` have a turn; undefined when there is none. */
  take(may: (caller: string, item: Item) => boolean = () => true): Item | undefined {
    for (const [caller, items] of this.#of) {
      const [item] = items;
      if (item === undefined || !may(caller, item)) continue;
      this.delete(caller, item);
      if (items.size > 0) {
        this.#of.delete(caller);
        this.#of.set(caller, items);
      }
      return item;
    }
    return undefined;
  }
}
