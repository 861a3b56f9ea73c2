import { CodecError } from '@transitd/raft-core';
import { damaged } from '../errors.ts';
import { comparePaths } from '../store/path.ts';
import { checkQuery, mergeAscending, mergeRows, type Row, takePage } from '../store/range.ts';
import {
  decodeSpaces,
  isDead,
  nameOf,
  noSpaces,
  type Spaces,
  spaceHead,
  spaceOf,
  spacesBelow,
  spacesName,
  visiblePath,
} from '../store/spaces.ts';
import type { RangePage, RangeQuery, StoredRecord } from '../store/store.ts';
import { Overlay } from './overlay.ts';
import type { OpenDatabase } from './state-level.ts';
import { StateStore } from './state-store.ts';

/** The records as of all applied entries: what is pending over what is on disk, found where the spaces say that a path leads. */
export class Records {
  #store: StateStore;
  #pending = new Overlay();
  spaces: Spaces;

  /** @param store - as {@link openState} gives it */
  constructor(store: StateStore) {
    this.#store = store;
    this.spaces = storedSpaces(store);
  }

  get store(): StateStore {
    return this.#store;
  }
  get pending(): Overlay {
    return this.#pending;
  }

  /** Another state takes the place of this one, also for a reader that is under way and asks for more. */
  replace(store: StateStore): void {
    this.#store = store;
    this.#pending = new Overlay();
    this.spaces = storedSpaces(store);
  }

  /** As they are kept here; not to be handed out. */
  at(path: string): StoredRecord | undefined {
    return this.find(nameOf(this.spaces, path));
  }

  /** As {@link at}, by name. */
  find(name: string): StoredRecord | undefined {
    const pending = this.#pending.get(name);
    if (pending === undefined) return this.#store.getSync(name);
    const { value, revision } = pending;
    return value === null ? undefined : { value, revision };
  }

  /** @throws TypeError for a query that breaks its rules */
  async range(query: RangeQuery): Promise<RangePage> {
    checkQuery(query);
    const { spaces } = this;
    const sources = spacesBelow(spaces, query.prefix).map((space) => this.#rowsOf(space, query, spaces));
    return takePage(query, sources.length === 1 && sources[0] !== undefined ? sources[0] : mergeAscending(sources));
  }

  /** Every record by its name, those included that no reader sees. */
  all(): AsyncGenerator<Row> {
    return this.#merged({ prefix: '' });
  }

  /** Names that nothing leads to any more, and nothing will. */
  async deadNames(limit: number): Promise<string[]> {
    const names: string[] = [];
    const { spaces } = this;
    for (let space = 0; space < spaces.nextSpace; space++) {
      const isWholeLive =
        spaces.routes.length === 0 ? space === 0 : spaces.routes.some((route) => route.prefix === '' && route.space === space);
      if (isWholeLive || space === spaces.attempt?.space) continue;
      for await (const { path: name } of this.#merged(inSpace(space, { prefix: '' }))) {
        if (!isDead(spaces, name)) continue;
        names.push(name);
        if (names.length >= limit) return names;
      }
    }
    return names;
  }

  /** What readers see of one space, under the paths that they know, as it is at this call. */
  #rowsOf(space: number, query: RangeQuery, spaces: Spaces): AsyncGenerator<Row> {
    return visibleRows(this.#merged(inSpace(space, query)), spaces, space);
  }

  /** Records by name. */
  #merged(query: Pick<RangeQuery, 'prefix' | 'after'>): AsyncGenerator<Row> {
    // Both are taken in this turn. A write in flight to disk is still in the overlay, so it counts the same whether the scan's
    // snapshot has it already or not; a settled one is in the snapshot for certain.
    const pending = this.#pending.within(query);
    const stored = this.#store.scan(query);
    return mergeRows(stored, pending);
  }
}

/** The records of a space that a query covers, by name. In space 0 those of the others and the record of the spaces sort first. */
const inSpace = (
  space: number,
  { prefix, after = '' }: Pick<RangeQuery, 'prefix' | 'after'>,
): { prefix: string; after: string } => {
  const head = spaceHead(space);
  const from = space === 0 && comparePaths(after, lastControl) < 0 ? lastControl : after;
  return { prefix: head + prefix, after: from === '' ? '' : head + from };
};

async function* visibleRows(rows: AsyncIterable<Row>, spaces: Spaces, space: number): AsyncGenerator<Row> {
  for await (const row of rows) {
    const path = visiblePath(spaces, row.path);
    if (path !== undefined && spaceOf(spaces, path) === space) yield { ...row, path };
  }
}

const lastControl = '\u001f';

/** Checks the record of the spaces too: without it nobody knows which records are read. */
export async function openState(
  directory: string,
  onFailure: (error: Error) => void,
  openDatabase?: OpenDatabase,
): Promise<StateStore> {
  const store = await StateStore.open(directory, onFailure, openDatabase);
  try {
    storedSpaces(store);
    return store;
  } catch (error) {
    await store.close();
    throw error instanceof CodecError
      ? damaged(directory, `has a record that this program does not know (${error.message})`)
      : error;
  }
}

const storedSpaces = (store: StateStore): Spaces => {
  const record = store.getSync(spacesName);
  return record === undefined ? noSpaces : decodeSpaces(record.value);
};
