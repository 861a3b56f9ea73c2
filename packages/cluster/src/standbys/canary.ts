import type { Store } from '@transitd/storage-fsm';

const path = 'core/canary';

/**
 * A record that the active node rewrites every few seconds with its clock. Its age on another node is the sum of replication lag and clock
 * skew.
 */
export class Canary {
  readonly #store: Store;
  readonly #unwatch: () => void;
  #utcMs: number | undefined;

  constructor(store: Store) {
    this.#store = store;
    this.#unwatch = store.watch(path, () => void this.#read());
    void this.#read();
  }

  /** The time in the newest record that this node has applied; undefined before the first. */
  get utcMs(): number | undefined {
    return this.#utcMs;
  }

  /** @throws StoreError */
  async write(utcMs: number): Promise<void> {
    await this.#store.commit({ conditions: [], writes: [{ path, value: Buffer.from(JSON.stringify({ utcMs })) }] });
  }

  close(): void {
    this.#unwatch();
  }

  /** Ignores a record that cannot be read, for example while the node is sealed. */
  async #read(): Promise<void> {
    try {
      const record = await this.#store.get(path);
      if (record === undefined) return;
      const { utcMs } = JSON.parse(Buffer.from(record.value).toString('utf8')) as { utcMs?: unknown };
      if (typeof utcMs === 'number') this.#utcMs = utcMs;
    } catch {
      // the next record replaces the unreadable one
    }
  }
}
