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
  #isRead = false;

  constructor(store: Store) {
    this.#store = store;
    this.#unwatch = store.watch(path, () => {
      this.#isRead = false;
      void this.refresh();
    });
    void this.refresh();
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

  /** Reads the record if it has changed. Ignores one that cannot be read, for example while the node is sealed; call it again. */
  async refresh(): Promise<void> {
    if (this.#isRead) return;
    this.#isRead = true;
    try {
      const record = await this.#store.get(path);
      if (record === undefined) return;
      const { utcMs } = JSON.parse(Buffer.from(record.value).toString('utf8')) as { utcMs?: unknown };
      if (typeof utcMs === 'number') this.#utcMs = utcMs;
    } catch {
      this.#isRead = false;
    }
  }
}
