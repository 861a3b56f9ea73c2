import { type Store, StoreError } from '@transitd/storage-fsm';
import { emptyRegistry, type Registry } from './registry.ts';
import { decodeRegistry, encodeRegistry, registryPath } from './registry-record.ts';

/** Attempts at a change that other changes overtake. */
const attemptsMax = 8;

/**
 * The registry in a store of decrypted records. Every node reads it, because each admits secondaries to its cluster port; the active node
 * changes it. A node that cannot read it, such as a sealed one, admits none.
 */
export class StoredRegistry {
  readonly #store: Pick<Store, 'get' | 'commit' | 'watch'>;
  readonly #listeners = new Set<() => void>();
  readonly #unwatch: () => void;
  #current: Registry = emptyRegistry;
  /** Counts the readings that have begun: an older one that ends later is not used. */
  #readings = 0;

  constructor(store: Pick<Store, 'get' | 'commit' | 'watch'>) {
    this.#store = store;
    this.#unwatch = store.watch(registryPath, () => void this.refresh().catch(() => undefined));
  }

  /** The registry as this node last read it; empty before the first reading. */
  get current(): Registry {
    return this.#current;
  }

  /** Calls the listener after every change that this node has read. @returns a function that ends the calls */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Reads the record again; call it when the store can be read for the first time, and when it can no longer be read. If reading fails,
   * nobody is admitted until the next call.
   * @throws StoreError; CodecError for a damaged record
   */
  async refresh(): Promise<void> {
    const reading = ++this.#readings;
    try {
      const { registry } = await this.#read();
      if (reading === this.#readings) this.#use(registry);
    } catch (error) {
      if (reading === this.#readings) this.#use(emptyRegistry);
      throw error;
    }
  }

  /**
   * Changes the registry; resolves when the change is committed and in force on this node. Nothing is written when `make` returns the
   * registry that it was given.
   * @param make - may be called more than once
   * @throws errors of `make`; StoreError, `busy` when other changes overtake this one again and again
   */
  async change(make: (registry: Registry) => Registry): Promise<Registry> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const { registry, revision } = await this.#read();
      const changed = make(registry);
      if (changed === registry) return registry;
      const { outcome } = await this.#store.commit({
        conditions: [{ path: registryPath, revision }],
        writes: [{ path: registryPath, value: encodeRegistry(changed) }],
      });
      if (outcome === 'conflict') continue;
      await this.refresh();
      return changed;
    }
    throw new StoreError('busy', 'the registry of secondaries changes too often: try again');
  }

  close(): void {
    this.#unwatch();
    this.#listeners.clear();
  }

  async #read(): Promise<{ readonly registry: Registry; readonly revision: number }> {
    const record = await this.#store.get(registryPath);
    if (record === undefined) return { registry: emptyRegistry, revision: 0 };
    return { registry: decodeRegistry(record.value), revision: record.revision };
  }

  #use(registry: Registry): void {
    this.#current = registry;
    for (const listener of [...this.#listeners]) listener();
  }
}
