interface Entered {
  readonly paths: ReadonlySet<string> | 'all';
  readonly left: Promise<void>;
}

/**
 * Keeps the order of commits that touch the same paths: etcd may execute the later of two requests first. Commits without a common path do
 * not wait for each other.
 */
export class CommitOrder {
  readonly #entered = new Set<Entered>();

  /**
   * Waits for all commits that entered before and touch one of these paths; `all` waits for every one and holds every later one back.
   * @returns a function that lets the next ones in
   */
  async enter(paths: ReadonlySet<string> | 'all'): Promise<() => void> {
    const before = [...this.#entered].filter((other) => overlap(other.paths, paths)).map(({ left }) => left);
    const { promise: left, resolve } = Promise.withResolvers<void>();
    const own = { paths, left };
    this.#entered.add(own);
    await Promise.all(before);
    return () => {
      this.#entered.delete(own);
      resolve();
    };
  }
}

function overlap(a: Entered['paths'], b: Entered['paths']): boolean {
  if (a === 'all' || b === 'all') return true;
  for (const path of a) if (b.has(path)) return true;
  return false;
}
