import type { Transaction } from '@transitd/storage-fsm';

/** Paths that a commit compares only, and paths that it writes. */
interface Touched {
  readonly compared: ReadonlySet<string>;
  readonly written: ReadonlySet<string>;
}

interface Entered {
  readonly touched: Touched | 'all';
  readonly left: Promise<void>;
}

/**
 * Keeps the order of commits of which one writes a path that the other compares or writes: etcd may execute the later of two requests
 * first. All other commits run at the same time, also those that compare the same path, as all changes of one mount do.
 */
export class CommitOrder {
  readonly #entered = new Set<Entered>();

  /**
   * Waits for all commits that entered before and overlap with this one; `all` waits for every one and holds every later one back.
   * @returns a function that lets the next ones in
   */
  async enter(transaction: Transaction | 'all'): Promise<() => void> {
    const touched: Entered['touched'] = transaction === 'all' ? 'all' : touchedBy(transaction);
    const before = [...this.#entered].filter((other) => overlap(other.touched, touched)).map(({ left }) => left);
    const { promise: left, resolve } = Promise.withResolvers<void>();
    const own: Entered = { touched, left };
    this.#entered.add(own);
    await Promise.all(before);
    return () => {
      this.#entered.delete(own);
      resolve();
    };
  }
}

function touchedBy({ conditions, writes }: Transaction): Touched {
  const paths = (entries: readonly { readonly path: string }[]): ReadonlySet<string> => new Set(entries.map(({ path }) => path));
  return { compared: paths(conditions), written: paths(writes) };
}

function overlap(a: Touched | 'all', b: Touched | 'all'): boolean {
  if (a === 'all' || b === 'all') return true;
  return meet(a.written, b.written) || meet(a.written, b.compared) || meet(b.written, a.compared);
}

function meet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  for (const path of a) if (b.has(path)) return true;
  return false;
}
