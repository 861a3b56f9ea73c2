import { type Store, StoreError } from '@transitd/storage-fsm';
import { emptyRegistry, type Registry } from './registry.ts';
import { decodeRegistry, encodeRegistry, registryPath } from './registry-record.ts';

/** How often a change is attempted while concurrent changes overtake it. */
const attemptsMax = 8;

/**
 * The registry, stored in a record. Every node reads it, because each node admits secondaries to its cluster port; only the active node
 * changes it. A node that cannot read it, such as a sealed node, admits no secondary.
 */
export class StoredRegistry {
  readonly #store: Pick<Store, 'get' | 'commit' | 'watch'>;
  readonly #listeners = new Set<() => void>();
  readonly #unwatch: () => void;
  #current: Registry = emptyRegistry;
  #isRead = false;
  /** The newest read that has begun. The result of an older read that ends later is not used. */
  #newest: Promise<void> | undefined;

  constructor(store: Pick<Store, 'get' | 'commit' | 'watch'>) {
    this.#store = store;
    this.#unwatch = store.watch(registryPath, () => void this.refresh().catch(() => undefined));
  }

  /** The registry as this node last read it; empty before the first read. */
  get current(): Registry {
    return this.#current;
  }

  /** Whether the newest read succeeded: otherwise `current` is empty, whatever the record says. */
  get isRead(): boolean {
    return this.#isRead;
  }

  /** Calls the listener after every change that this node has read. @returns a function that ends the calls */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Reads the record again. The caller calls this when the store becomes readable, and when it stops being readable. If the read fails, no
   * secondary is admitted until the next call.
   * @throws StoreError; CodecError for a damaged record
   */
  refresh(): Promise<void> {
    const newest: Promise<void> = this.#refresh(() => this.#newest === newest);
    this.#newest = newest;
    return newest;
  }

  /**
   * Changes the registry. Resolves when the change is committed and in force on this node. Writes nothing if `make` returns the registry
   * that it was given.
   * @param make - returns the changed registry; may be called more than once
   * @throws errors of `make`; StoreError `busy` if concurrent changes overtake every attempt
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

  async #refresh(isNewest: () => boolean): Promise<void> {
    const read = await this.#read().catch((error: unknown) => ({ error }));
    // A newer read has begun: `current` shows what this one has found, or something newer, when that one has ended.
    if (!isNewest()) return this.#newest;
    this.#isRead = 'registry' in read;
    this.#use('registry' in read ? read.registry : emptyRegistry);
    if ('error' in read) throw read.error;
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
