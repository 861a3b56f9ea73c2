import type { RecordClock } from '@transitd/process';
import { type Changes, type Store, StoreError } from '@transitd/storage-fsm';
import {
  type EngineCaches,
  engineCaches,
  type ManagedKeys,
  type SecondaryConfirmation,
  TransitEngine,
  TransitError,
  type UseObserver,
} from '@transitd/transit-engine';
import { disableMount, enableMount, type MountRequest, type MountTuning, moveMount, tuneMount } from './mount-changes.ts';
import {
  type Mount,
  type MountTable,
  type Move,
  mountRemoved,
  mountsPath,
  readMounts,
  removedIn,
  removedPath,
  writtenMounts,
} from './mounts.ts';

export interface MountedEnginesOptions {
  /** The decrypted records. */
  readonly store: Store;
  /** Ciphertext prefix of new mounts that do not name one. */
  readonly ciphertextPrefix: string;
  /** Returns the managed keys of a mount. @param allowed - returns the names that the mount may use at that moment */
  readonly managedKeysFor: (allowed: () => readonly string[]) => ManagedKeys;
  /** Dates and rotates keys. */
  readonly clock: RecordClock;
  /** Reports when keys are used; absent if nobody wants to know. */
  readonly useObserver?: UseObserver | undefined;
  /** The secondary clusters, which must have key material before it is used; absent where no keys are made. */
  readonly secondaries?: SecondaryConfirmation;
  /** Number of threads that share the memory for caches; each opens the engines of all mounts. */
  readonly threads: number;
  /** Called when changed mounts could not be read; all engines are closed then. */
  readonly onFailure: (error: unknown) => void;
}

interface Mounted {
  readonly engine: TransitEngine;
  mount: Mount;
  /** Whether the mount was removed. Nothing is written for a removed mount. */
  isRemoved: boolean;
}

type Decision = (MountTable & { readonly removed?: string }) | undefined;

const attemptsMax = 5;

/**
 * The mounts in the records, each with its engine. Every node follows changes of the records: the apply of a removal closes the mount, and
 * any other change is in force when {@link changing} has resolved.
 */
export class MountedEngines {
  readonly #options: MountedEnginesOptions;
  readonly #caches: EngineCaches;
  readonly #unwatch: () => void;
  /** By the id of the mount. */
  readonly #mounted = new Map<string, Mounted>();
  #engines: ReadonlyMap<string, TransitEngine> = new Map();
  #table: MountTable = { mounts: [], moves: [] };
  /** Segments of the longest path. */
  #depthMax = 0;
  #changing: Promise<void> | undefined;
  #closed = false;

  private constructor(options: MountedEnginesOptions) {
    this.#options = options;
    this.#caches = engineCaches(options.threads);
    this.#unwatch = options.store.watch(mountsPath, (changes) => this.#follow(changes));
  }

  /** @throws StoreError, or an error when a record cannot be read */
  static async open(options: MountedEnginesOptions): Promise<MountedEngines> {
    const mounts = new MountedEngines(options);
    const first = mounts.#read();
    // Changes that arrive during this first read are read after it.
    const firstEnd = first.catch(() => undefined);
    mounts.#changing = firstEnd;
    try {
      await first;
      if (mounts.#changing === firstEnd) mounts.#changing = undefined;
      await mounts.#changing;
      return mounts;
    } catch (error) {
      mounts.close();
      throw error;
    }
  }

  get list(): readonly Mount[] {
    return this.#table.mounts;
  }

  /** Engines by the path of their mount. */
  get engines(): ReadonlyMap<string, TransitEngine> {
    return this.#engines;
  }

  /** Returns the engine of a mount by the mount's id. */
  engineOf(id: string): TransitEngine | undefined {
    return this.#mounted.get(id)?.engine;
  }

  /** Pending while an applied change is not in force yet, so that later requests can wait for it. Never rejects. */
  get changing(): Promise<void> | undefined {
    return this.#changing;
  }

  /**
   * Returns the path of the mount that a request's path belongs to, and its number of segments.
   * @throws StoreError `sealed` when the engines are closed; undefined would mean that nothing is mounted there
   */
  under(segments: readonly string[]): { readonly path: string; readonly depth: number } | undefined {
    if (this.#closed) throw new StoreError('sealed', 'transitd is sealed');
    let path = '';
    for (let depth = 1; depth <= this.#depthMax && depth <= segments.length; depth++) {
      const segment = segments[depth - 1] ?? '';
      path = depth === 1 ? segment : `${path}/${segment}`;
      if (this.#engines.has(path)) return { path, depth };
    }
    return undefined;
  }

  /** Returns the move with this id; undefined unless it is one of the remembered ones. */
  move(id: string): Move | undefined {
    return this.#table.moves.find((each) => each.id === id);
  }

  /** @throws MountError `invalid_mount`; TransitError `conflict`; StoreError */
  async enable(request: MountRequest): Promise<void> {
    await this.#change((table) => enableMount(table, request, this.#options.ciphertextPrefix));
  }

  /** Does nothing when nothing is mounted at `path`. @throws MountError `invalid_mount`; TransitError `conflict`; StoreError */
  async disable(path: string): Promise<void> {
    await this.#change((table) => disableMount(table, path));
  }

  /** @throws MountError `invalid_mount`; TransitError `conflict`; StoreError */
  async tune(path: string, tuning: MountTuning): Promise<void> {
    await this.#change((table) => tuneMount(table, path, tuning));
  }

  /** @returns the id of the move @throws MountError `invalid_mount`; TransitError `conflict`; StoreError */
  async remount(paths: { readonly from: string; readonly to: string }): Promise<string> {
    const { move } = await this.#change((table) => moveMount(table, paths));
    return move.id;
  }

  /** Drops every key. No method may be called afterwards. */
  close(): void {
    this.#closed = true;
    this.#unwatch();
    for (const { engine } of this.#mounted.values()) engine.close();
    this.#mounted.clear();
    this.#show({ mounts: [], moves: [] });
  }

  /** Commits a change. If another change is committed first, the revision does not match and this change is decided again. */
  async #change<D extends Decision>(decide: (table: MountTable) => D): Promise<D> {
    const { store } = this.#options;
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const { table, revision } = await readMounts(store);
      const next = decide(table);
      if (next === undefined) return next;
      const writes = [writtenMounts(next)];
      if (next.removed !== undefined) writes.push({ path: removedPath(next.removed), value: removalMark });
      const { outcome } = await store.commit({ conditions: [{ path: mountsPath, revision }], writes });
      if (outcome === 'conflict') continue;
      await this.#changing;
      return next;
    }
    throw new TransitError('too_many_conflicts', 'the mounts changed too often in the meantime; nothing was done, try again');
  }

  #follow(changes: Changes): void {
    if (changes !== 'everything') {
      for (const { path, deleted } of changes) {
        const id = removedIn(path);
        if (id !== undefined && !deleted) this.#remove(id);
      }
      if (!changes.some(({ path }) => path === mountsPath)) return;
    }
    const reading = (this.#changing ?? Promise.resolve())
      .then(() => this.#read())
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        if (this.#changing === reading) this.#changing = undefined;
      });
    this.#changing = reading;
  }

  /** Opens new mounts and closes removed ones; all changes come into force at once. */
  async #read(): Promise<void> {
    const { table } = await readMounts(this.#options.store);
    const added: Mounted[] = [];
    for (const mount of table.mounts) {
      if (!this.#mounted.has(mount.id)) added.push(await this.#open(mount));
    }
    if (this.#closed) {
      for (const { engine } of added) engine.close();
      return;
    }
    for (const mounted of added) this.#mounted.set(mounted.mount.id, mounted);
    const present = new Set(table.mounts.map(({ id }) => id));
    for (const id of [...this.#mounted.keys()]) if (!present.has(id)) this.#remove(id);
    this.#show(table);
  }

  async #open(mount: Mount): Promise<Mounted> {
    const { store, managedKeysFor, clock, useObserver, secondaries } = this.#options;
    const { id, ciphertextPrefix } = mount;
    const engine = new TransitEngine({
      store: mountStore(store, mount, () => mounted.isRemoved),
      mountId: id,
      ciphertextPrefix,
      clock,
      caches: this.#caches,
      managedKeys: managedKeysFor(() => mounted.mount.allowedManagedKeys),
      observer: useObserver,
      secondaries,
    });
    const mounted: Mounted = { engine, mount, isRemoved: false };
    await engine.open();
    return mounted;
  }

  #remove(id: string): void {
    const mounted = this.#mounted.get(id);
    if (mounted === undefined) return;
    mounted.isRemoved = true;
    this.#mounted.delete(id);
    mounted.engine.close(() => mountRemoved(mounted.mount));
    this.#show(this.#table);
  }

  #show(table: MountTable): void {
    const mounts = table.mounts.filter(({ id }) => this.#mounted.has(id));
    const engines = new Map<string, TransitEngine>();
    for (const mount of mounts) {
      const mounted = this.#mounted.get(mount.id);
      if (mounted === undefined) continue;
      mounted.mount = mount;
      mounted.engine.ciphertextPrefix = mount.ciphertextPrefix;
      engines.set(mount.path, mounted.engine);
    }
    this.#table = { ...table, mounts };
    this.#engines = engines;
    this.#depthMax = Math.max(0, ...mounts.map(({ path }) => path.split('/').length));
  }

  #fail(error: unknown): void {
    if (this.#closed) return;
    this.close();
    this.#options.onFailure(error);
  }
}

/** Content of the record of a removal. The record only has to exist. */
const removalMark = Uint8Array.of(1);

/**
 * Returns the store for the engine of a mount; it writes nothing for a removed mount. Each commit has the condition that the mount is not
 * removed, because a commit may be proposed before this node knows of the removal. So the log has no record of the mount after its removal.
 * @param isRemoved - returns whether this node knows of the removal
 * @throws MountError `mount_removed` from commits for a removed mount
 */
function mountStore(store: Store, mount: Pick<Mount, 'path' | 'id'>, isRemoved: () => boolean): Store {
  const isPresent = { path: removedPath(mount.id), revision: 0 };
  return {
    get: (at) => store.get(at),
    range: (query) => store.range(query),
    paths: (query) => store.paths(query),
    watch: (prefix, listener) => store.watch(prefix, listener),
    async commit(transaction) {
      if (isRemoved()) throw mountRemoved(mount);
      const result = await store.commit({ ...transaction, conditions: [...transaction.conditions, isPresent] });
      if (result.outcome === 'conflict' && isRemoved()) throw mountRemoved(mount);
      return result;
    },
  };
}
