/** One lock per name. Tasks of one name run one after the other, in order of arrival; tasks of other names do not wait for them. */
export class NamedLocks {
  /** The last task of each name that has not finished. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `task` after every earlier task of this name has finished or failed. Returns what `task` returns and throws what it throws. */
  async run<T>(name: string, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const mine = before.then(task, task);
    this.#last.set(name, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(name) === mine) this.#last.delete(name);
    }
  }
}
