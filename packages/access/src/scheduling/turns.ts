/** Changes of one thing one after the other, by its name: many at once would conflict, and whoever keeps on could hold off the others. */
export class Turns {
  /** The last of those that wait, by name. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `change` when all that came before it, by this name, have ended. */
  async take<T>(name: string, change: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const mine = before.then(change, change);
    this.#last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === mine) this.#last.delete(name);
    }
  }
}
