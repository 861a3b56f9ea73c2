import { CodecError } from '@transitd/raft-core';
import { damaged } from '../errors.ts';
import { type FeatureLevel, type LevelRange, requireSupported, supportedLevels } from '../level/feature-levels.ts';
import { decodeLevel, levelName } from '../level/level-record.ts';
import { comparePaths } from '../store/path.ts';
import { mergePathPages, withPending } from '../store/path-page.ts';
import { checkQuery, mergeAscending, mergeRows, pageRecordsMax, type Row, takePage } from '../store/range.ts';
import { decodeReplicationState, type ReplicationState, replicationName } from '../store/replication-state.ts';
import {
  decodeSpaces,
  isUnreachable,
  nameOf,
  noSpaces,
  type Spaces,
  spaceHead,
  spaceOf,
  spacesBelow,
  spacesName,
  visiblePath,
} from '../store/spaces.ts';
import type { PathPage, RangePage, RangeQuery, StoredRecord } from '../store/store.ts';
import { Overlay } from './overlay.ts';
import type { OpenDatabase } from './state-level.ts';
import { StateStore } from './state-store.ts';

/**
 * The records as of all applied entries: the records on disk, overlaid with pending writes. The routes of the spaces say where a path is
 * stored.
 */
export class Records {
  #store: StateStore;
  #pending = new Overlay();
  spaces: Spaces;
  level: FeatureLevel;
  replication: ReplicationState | undefined;

  readonly #decodeReplication: typeof decodeReplicationState;

  /** @param store - opened by {@link openState}, with the same `decodeReplication` */
  constructor(store: StateStore, decodeReplication = decodeReplicationState) {
    this.#store = store;
    this.#decodeReplication = decodeReplication;
    this.spaces = storedSpaces(store);
    this.replication = storedReplication(store, this.#decodeReplication);
    this.level = storedLevel(store);
  }

  get store(): StateStore {
    return this.#store;
  }
  get pending(): Overlay {
    return this.#pending;
  }

  /** Replaces the state, also for readers that are in the middle of a range. */
  replace(store: StateStore): void {
    this.#store = store;
    this.#pending = new Overlay();
    this.spaces = storedSpaces(store);
    this.replication = storedReplication(store, this.#decodeReplication);
    this.level = storedLevel(store);
  }

  /** Returns the record itself, not a copy: callers must not pass it on. */
  at(path: string): StoredRecord | undefined {
    return this.find(nameOf(this.spaces, path));
  }

  /** Returns the record by its name, as {@link at} does by path. */
  find(name: string): StoredRecord | undefined {
    const pending = this.#pending.get(name);
    if (pending === undefined) return this.#store.getSync(name);
    const { value, revision } = pending;
    return value === null ? undefined : { value, revision };
  }

  /** @throws TypeError for an invalid query */
  async range(query: RangeQuery): Promise<RangePage> {
    checkQuery(query);
    const { spaces } = this;
    const sources = spacesBelow(spaces, query.prefix).map((space) => this.#rowsOf(space, query, spaces));
    return takePage(query, sources.length === 1 && sources[0] !== undefined ? sources[0] : mergeAscending(sources));
  }

  /** @throws TypeError for an invalid query */
  async paths(query: RangeQuery): Promise<PathPage> {
    checkQuery(query);
    const { spaces } = this;
    const limit = Math.min(query.limit ?? pageRecordsMax, pageRecordsMax);
    const pages = spacesBelow(spaces, query.prefix).map((space) => this.#pathsIn(space, { ...query, limit }, spaces));
    return mergePathPages(await Promise.all(pages), limit);
  }

  /** Yields every record by its name, including records that no reader sees. */
  all(): AsyncGenerator<Row> {
    return this.#merged({ prefix: '' });
  }

  /** Returns up to `limit` names of records that are unreachable, now and later. */
  async unreachableNames(limit: number): Promise<string[]> {
    const names: string[] = [];
    const { spaces } = this;
    for (let space = 0; space < spaces.nextSpace; space++) {
      const isWholeLive =
        spaces.routes.length === 0 ? space === 0 : spaces.routes.some((route) => route.prefix === '' && route.space === space);
      if (isWholeLive || space === spaces.attempt?.space) continue;
      for await (const { path: name } of this.#merged(inSpace(space, { prefix: '' }))) {
        if (!isUnreachable(spaces, name)) continue;
        names.push(name);
        if (names.length >= limit) return names;
      }
    }
    return names;
  }

  /** Yields the visible records of one space by their paths, as of this call. */
  #rowsOf(space: number, query: RangeQuery, spaces: Spaces): AsyncGenerator<Row> {
    return visibleRows(this.#merged(inSpace(space, query)), spaces, space);
  }

  /** Returns the visible paths of one space, as of this call. */
  async #pathsIn(space: number, { limit, ...query }: RangeQuery & { limit: number }, spaces: Spaces): Promise<PathPage> {
    const within = inSpace(space, query);
    const pending = this.#pending.within(within);
    const { paths: names, next } = withPending(await this.#store.names(within, limit), pending);
    const paths = names.filter((name) => isVisible(spaces, space, name)).map((name) => name.slice(spaceHead(space).length));
    return next === undefined ? { paths } : { paths, next: next.slice(spaceHead(space).length) };
  }

  /** Yields the records under their names. */
  #merged(query: Pick<RangeQuery, 'prefix' | 'after'>): AsyncGenerator<Row> {
    // The overlay and the scan's snapshot are taken in one event-loop turn. A write that is being flushed is still in the overlay, so it
    // does not matter whether the snapshot has it too. A write that was flushed is in the snapshot.
    const pending = this.#pending.within(query);
    const stored = this.#store.scan(query);
    return mergeRows(stored, pending);
  }
}

/**
 * Translates a query by path into a query by name within a space. In space 0, the names in all other spaces and the name of the spaces
 * record sort before the first path.
 */
const inSpace = (
  space: number,
  { prefix, after = '' }: Pick<RangeQuery, 'prefix' | 'after'>,
): { prefix: string; after: string } => {
  const head = spaceHead(space);
  const from = space === 0 && comparePaths(after, lastControl) < 0 ? lastControl : after;
  return { prefix: head + prefix, after: from === '' ? '' : head + from };
};

function isVisible(spaces: Spaces, space: number, name: string): boolean {
  const path = visiblePath(spaces, name);
  return path !== undefined && spaceOf(spaces, path) === space;
}

async function* visibleRows(rows: AsyncIterable<Row>, spaces: Spaces, space: number): AsyncGenerator<Row> {
  for await (const row of rows) {
    const path = visiblePath(spaces, row.path);
    if (path !== undefined && spaceOf(spaces, path) === space) yield { ...row, path };
  }
}

const lastControl = '\u001f';

export interface OpenStateOptions {
  readonly openDatabase?: OpenDatabase | undefined;
  readonly levels?: LevelRange | undefined;
  /** A recovery reads also a replication record that a node refuses. */
  readonly decodeReplication?: typeof decodeReplicationState | undefined;
}

/**
 * Opens a state and checks the records that describe it: the spaces, which resolve paths; the replication state, which says what may be
 * written; and the feature level.
 * @throws UnsupportedLevel; StorageDamaged and others as {@link StateStore.open} does
 */
export async function openState(
  directory: string,
  onFailure: (error: Error) => void,
  { openDatabase, levels = supportedLevels, decodeReplication = decodeReplicationState }: OpenStateOptions = {},
): Promise<StateStore> {
  const store = await StateStore.open(directory, onFailure, openDatabase);
  try {
    storedSpaces(store);
    // A state without entries has no level yet: it gets the cluster's from the log or from a snapshot.
    if (store.metaAtOpen.appliedIndex > 0) requireSupported(storedLevel(store), levels, directory);
    readableReplication(store, directory, decodeReplication);
    return store;
  } catch (error) {
    await store.close();
    throw error instanceof CodecError
      ? damaged(directory, `has a record that this version cannot read (${error.message})`)
      : error;
  }
}

const storedSpaces = (store: StateStore): Spaces => {
  const record = store.getSync(spacesName);
  return record === undefined ? noSpaces : decodeSpaces(record.value);
};

const storedLevel = (store: StateStore): FeatureLevel => decodeLevel(store.getSync(levelName)?.value);

/** @throws StorageDamaged for a record that `decode` refuses */
function readableReplication(store: StateStore, directory: string, decode: typeof decodeReplicationState): void {
  try {
    storedReplication(store, decode);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    throw damaged(
      directory,
      `has no usable state, because ${error.message}`,
      'run transitd operator recover, and restore its snapshot on a new cluster',
    );
  }
}

const storedReplication = (store: StateStore, decode: typeof decodeReplicationState): ReplicationState | undefined => {
  const record = store.getSync(replicationName);
  return record && decode(record.value);
};
