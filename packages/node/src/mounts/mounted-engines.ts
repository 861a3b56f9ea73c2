import { noHandler } from '@transitd/http';
import { type Changes, type Store, StoreError } from '@transitd/storage-fsm';
import { type ManagedKeys, TransitEngine, TransitError } from '@transitd/transit-engine';
import { disabled, enabled, type MountRequest, type MountTuning, moved, tuned } from './mount-changes.ts';
import { fenced } from './mount-fence.ts';
import {
  type Mount,
  type MountTable,
  type Move,
  mountsPath,
  readMounts,
  removedIn,
  removedPath,
  writtenMounts,
} from './mounts.ts';

export interface MountedEnginesOptions {
  /** The records in clear. */
  readonly store: Store;
  /** Of new mounts that name none. */
  readonly ciphertextPrefix: string;
  /** What a mount may use that is allowed these managed keys at the time. */
  readonly managedKeysFor: (allowed: () => readonly string[]) => ManagedKeys;
  /** By which keys are dated and rotated, in milliseconds since 1970. */
  readonly now: () => number;
  /** The mounts could not be read anew: nothing is served any more from those that were known. */
  readonly onFailure: (error: unknown) => void;
}

interface Mounted {
  readonly engine: TransitEngine;
  mount: Mount;
  /** The mount was removed: nothing is written for it any more. */
  isGone: boolean;
}

type Decision = (MountTable & { readonly removed?: string }) | undefined;

const attemptsMax = 5;

/**
 * The mounts as the records have them, each with its engine. It follows the records on every node alike: a mount that is removed is
 * closed within the apply of its removal, and every other change holds when {@link changing} has resolved.
 */
export class MountedEngines {
  readonly #options: MountedEnginesOptions;
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
    this.#unwatch = options.store.watch(mountsPath, (changes) => this.#follow(changes));
  }

  /** @throws StoreError, or an error when a record cannot be read */
  static async open(options: MountedEnginesOptions): Promise<MountedEngines> {
    const mounts = new MountedEngines(options);
    const first = mounts.#read();
    // What changes meanwhile is read behind it.
    const begun = first.catch(() => undefined);
    mounts.#changing = begun;
    try {
      await first;
      if (mounts.#changing === begun) mounts.#changing = undefined;
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

  /** By the path of their mount. */
  get engines(): ReadonlyMap<string, TransitEngine> {
    return this.#engines;
  }

  /** Pending while a change that was applied is not in force yet: who comes behind it waits. Never fails. */
  get changing(): Promise<void> | undefined {
    return this.#changing;
  }

  /**
   * The mount that a request's path lies below, and how many of its segments are the mount's.
   * @throws StoreError `sealed` when it is closed: that is not to look as if nothing were mounted
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

  /** A move that was made not too long ago. */
  move(id: string): Move | undefined {
    return this.#table.moves.find((each) => each.id === id);
  }

  /** @throws RequestError `invalid_request`; TransitError `conflict`; StoreError */
  async enable(request: MountRequest): Promise<void> {
    await this.#change((table) => enabled(table, request, this.#options.ciphertextPrefix));
  }

  /** Nothing happens where nothing is mounted. @throws RequestError `invalid_request`; TransitError `conflict`; StoreError */
  async disable(path: string): Promise<void> {
    await this.#change((table) => disabled(table, path));
  }

  /** @throws RequestError `invalid_request`; TransitError `conflict`; StoreError */
  async tune(path: string, tuning: MountTuning): Promise<void> {
    await this.#change((table) => tuned(table, path, tuning));
  }

  /** @returns the id of the move @throws RequestError `invalid_request`; TransitError `conflict`; StoreError */
  async remount(paths: { readonly from: string; readonly to: string }): Promise<string> {
    const { move } = await this.#change((table) => moved(table, paths));
    return move.id;
  }

  /** Forgets every key. Nothing is to be asked afterwards. */
  close(): void {
    this.#closed = true;
    this.#unwatch();
    for (const { engine } of this.#mounted.values()) engine.close();
    this.#mounted.clear();
    this.#show({ mounts: [], moves: [] });
  }

  /** Of two changes at once one meets the other's revision, and decides anew. */
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
    throw new TransitError('too_many_conflicts', 'the mounts changed too often in the meantime; nothing was done');
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

  /** Opens what is new and closes what is gone; then all of it is in force at once. */
  async #read(): Promise<void> {
    const { table } = await readMounts(this.#options.store);
    const fresh: Mounted[] = [];
    for (const mount of table.mounts) {
      if (!this.#mounted.has(mount.id)) fresh.push(await this.#open(mount));
    }
    if (this.#closed) {
      for (const { engine } of fresh) engine.close();
      return;
    }
    for (const mounted of fresh) this.#mounted.set(mounted.mount.id, mounted);
    const present = new Set(table.mounts.map(({ id }) => id));
    for (const id of [...this.#mounted.keys()]) if (!present.has(id)) this.#remove(id);
    this.#show(table);
  }

  async #open(mount: Mount): Promise<Mounted> {
    const { store, managedKeysFor, now } = this.#options;
    const { id, ciphertextPrefix } = mount;
    const engine = new TransitEngine({
      store: fenced(store, mount, () => mounted.isGone),
      mountId: id,
      ciphertextPrefix,
      now,
      managedKeys: managedKeysFor(() => mounted.mount.allowedManagedKeys),
    });
    const mounted: Mounted = { engine, mount, isGone: false };
    await engine.open();
    return mounted;
  }

  #remove(id: string): void {
    const mounted = this.#mounted.get(id);
    if (mounted === undefined) return;
    const { path } = mounted.mount;
    mounted.isGone = true;
    this.#mounted.delete(id);
    mounted.engine.close(() => noHandler(`${path}/`));
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

/** That it was written is what counts. */
const removalMark = Uint8Array.of(1);
