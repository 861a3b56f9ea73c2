import type { Change, FeatureLevel, RangeQuery, Write } from '@transitd/storage-fsm';
import type { EtcdEvent, EtcdRangeAnswer, EtcdRow } from '../etcd.ts';
import { Chunks } from './chunks.ts';
import type { KeyKind, Keys } from './keys.ts';
import { decodeMarker, type Marker } from './marker.ts';
import { decodeRecord } from './record-value.ts';
import { SortedPaths } from './sorted-paths.ts';
import { decodeSpace, firstSpace, type LiveSpace } from './space.ts';
import type { RevisionEvents } from './watch-revisions.ts';

/** A record of the copy. `revision` is the one at which it took effect, `modRevision` that of its key, 0 while only a chunk holds it. */
export interface CopiedRecord {
  readonly value: Uint8Array;
  readonly revision: number;
  readonly modRevision: number;
}

/** The newest commit that a copy contains; revision 0 if there was none. */
export interface SeenMarker {
  readonly revision: number;
  readonly version: number;
  readonly attempt: string;
}

/** The key of the active node. */
export interface ActiveKey {
  readonly owner: string;
  readonly createRevision: number;
  readonly modRevision: number;
}

/** The feature level of the cluster; 0 before it was written. */
export interface ClusterLevel {
  readonly level: FeatureLevel;
  readonly modRevision: number;
}

/** The newest heartbeat. */
export interface SeenHeartbeat {
  readonly revision: number;
  /** The active node that wrote it; empty if that node then gave the role up. */
  readonly owner: string;
}

/** A staged transaction that is in effect, and not yet written to the keys of its records. */
export interface StagedTransaction {
  readonly revision: number;
  readonly writes: readonly Write[];
}

/** The events contradict the copy or each other: an event is missing, or somebody else has written. The state must be read again. */
export class CopyFault extends Error {
  override readonly name = 'CopyFault';
}

type Named = Exclude<KeyKind['kind'], 'record' | 'chunk' | 'node'>;
interface KnownEvent {
  readonly event: EtcdEvent;
  readonly kind: KeyKind;
}

/** The records of a cluster as of one revision of etcd, and the keys beside them. Without effects: rows and events go in. */
export class Copy {
  readonly #keys: Keys;
  readonly #records = new Map<string, CopiedRecord>();
  readonly #paths = new SortedPaths();
  readonly #chunks = new Chunks();
  readonly #nodes = new Map<number, Uint8Array>();
  #revision: number;
  #marker: SeenMarker = { revision: 0, version: 0, attempt: '' };
  #active: ActiveKey | undefined;
  #heartbeat: SeenHeartbeat | undefined;
  #staged: StagedTransaction | undefined;
  #reserved = 0;
  #reservedRevision = 0;
  #cluster = '';
  #level: ClusterLevel = { level: 0, modRevision: 0 };
  #space: LiveSpace = firstSpace;
  #spaceRevision = 0;

  /**
   * @param rows - all rows below the prefix as of `revision`, ascending by key
   * @throws CopyFault for rows that no replica writes
   */
  constructor(keys: Keys, { revision, rows }: { readonly revision: number; readonly rows: readonly EtcdRow[] }) {
    this.#keys = keys;
    this.#revision = revision;
    const staged = this.#read(rows);
    if (staged !== undefined) this.#takeEffect(this.#stagedBy(staged));
  }

  /**
   * Makes a copy of rows that arrive in pages of one revision, so that other tasks run in between.
   * @throws CopyFault; what `pages` throws
   */
  static async of(keys: Keys, pages: AsyncIterable<Pick<EtcdRangeAnswer, 'revision' | 'rows'>>): Promise<Copy> {
    const copy = new Copy(keys, { revision: 0, rows: [] });
    let staged: EtcdEvent | undefined;
    for await (const { revision, rows } of pages) {
      copy.#revision ||= revision;
      staged = copy.#read(rows) ?? staged;
    }
    if (staged !== undefined) copy.#takeEffect(copy.#stagedBy(staged));
    return copy;
  }

  /** Of the newest event below the prefix, or of the reading. */
  get revision(): number {
    return this.#revision;
  }
  get marker(): SeenMarker {
    return this.#marker;
  }
  get active(): ActiveKey | undefined {
    return this.#active;
  }
  /** Undefined before the first one. */
  get heartbeat(): SeenHeartbeat | undefined {
    return this.#heartbeat;
  }
  get staged(): StagedTransaction | undefined {
    return this.#staged;
  }
  get hasChunks(): boolean {
    return !this.#chunks.isEmpty;
  }
  /** Number of values that nodes have reserved so far. */
  get reserved(): number {
    return this.#reserved;
  }
  /** Revision at which a node last reserved values; 0 before that. */
  get reservedRevision(): number {
    return this.#reservedRevision;
  }
  /** The records with which nodes have made themselves known, by the ids of the nodes. */
  get nodes(): ReadonlyMap<number, Uint8Array> {
    return this.#nodes;
  }
  /** Id of the cluster; empty before it was written. */
  get cluster(): string {
    return this.#cluster;
  }

  get level(): ClusterLevel {
    return this.#level;
  }
  /** The space of the records. */
  get space(): number {
    return this.#space.space;
  }
  /** Revision at which the latest restore took effect; 0 if there was none. */
  get spaceRevision(): number {
    return this.#spaceRevision;
  }
  /** The restore that made these records the state; empty if there was none. */
  get restoredBy(): string {
    return this.#space.attempt;
  }

  get(path: string): CopiedRecord | undefined {
    return this.#records.get(path);
  }

  /** Yields the paths of a range, ascending. The copy must not change meanwhile. */
  paths(query: Pick<RangeQuery, 'prefix' | 'after'>): Generator<string> {
    return this.#paths.below(query);
  }

  /**
   * Applies one whole revision and returns the changes of records.
   * @returns `replaced` if a restore took effect: nothing was applied, and the state must be read again
   * @throws CopyFault, and has changed nothing then
   */
  apply({ revision, events }: RevisionEvents): Change[] | 'replaced' {
    if (revision <= this.#revision) throw new CopyFault(`revision ${revision} comes after ${this.#revision}`);
    const known = [...this.#known(events)];
    if (known.some(({ kind }) => kind.kind === 'space')) return 'replaced';
    const marker = this.#checkedMarker(known);
    const stagedEvent = known.find(({ kind }) => kind.kind === 'staged')?.event;
    const staged = stagedEvent === undefined || stagedEvent.deleted ? undefined : this.#stagedBy(stagedEvent);
    const records = known.flatMap(({ event, kind }) => (kind.kind === 'record' ? [this.#checkedRecord(kind.path, event)] : []));

    for (const { event, kind } of known)
      if (kind.kind === 'reserved' || (kind.kind === 'level' && !event.deleted)) countOf(event.row);

    this.#revision = revision;
    if (marker !== undefined) this.#marker = marker;
    if (stagedEvent?.deleted) this.#staged = undefined;
    for (const { event, kind } of known) {
      if (kind.kind === 'chunk') this.#chunks.take(event);
      else if (kind.kind === 'node') this.#take(kind.id, event);
      else if (kind.kind !== 'record' && kind.kind !== 'marker' && kind.kind !== 'staged') this.#name(kind.kind, event);
    }
    if (staged !== undefined) return this.#takeEffect(staged);
    return records.flatMap(({ path, record }) => this.#set(path, record));
  }

  /**
   * Takes rows of a reading; the key that names the space comes before all records.
   * @returns the pointer to the staged transaction, if it is among them; its chunks come last
   */
  #read(rows: readonly EtcdRow[]): EtcdEvent | undefined {
    let staged: EtcdEvent | undefined;
    for (const { event, kind } of this.#known(rows.map((row) => ({ deleted: false, row })))) {
      if (kind.kind === 'record') this.#set(kind.path, recordOf(event.row));
      else if (kind.kind === 'chunk') this.#chunks.take(event);
      else if (kind.kind === 'node') this.#nodes.set(kind.id, event.row.value);
      else if (kind.kind === 'staged') staged = event;
      else this.#name(kind.kind, event);
    }
    return staged;
  }

  /** Leaves out the records of other spaces, and keys that this version does not know. */
  *#known(events: Iterable<EtcdEvent>): Generator<KnownEvent> {
    for (const event of events) {
      const kind = this.#keys.kindOf(event.row.key);
      if (kind !== undefined && (kind.kind !== 'record' || kind.space === this.space)) yield { event, kind };
    }
  }

  /** A record changes only in the transaction of a commit. @returns the marker, if the revision is a commit */
  #checkedMarker(known: readonly KnownEvent[]): SeenMarker | undefined {
    const row = known.find(({ kind }) => kind.kind === 'marker')?.event.row;
    const others = known.filter(({ kind }) => kind.kind !== 'marker');
    if (row === undefined) {
      if (others.some(({ kind }) => kind.kind === 'record' || kind.kind === 'staged'))
        throw new CopyFault('a record has changed without a commit');
      return undefined;
    }
    const marker = markerOf(row);
    if (row.version !== this.#marker.version + 1)
      throw new CopyFault(`commit ${row.version} follows commit ${this.#marker.version}`);
    const deletes = others.filter(({ event }) => event.deleted).length;
    if (others.length - deletes !== marker.puts || (marker.deletes ?? deletes) !== deletes)
      throw new CopyFault(`commit ${row.version} is not complete`);
    return seen(row, marker);
  }

  #checkedRecord(
    path: string,
    { deleted, row }: EtcdEvent,
  ): { readonly path: string; readonly record: CopiedRecord | undefined } {
    if (deleted) return { path, record: undefined };
    const record = recordOf(row);
    const isUnpacked = record.revision !== row.modRevision;
    if (isUnpacked && this.#records.get(path)?.revision !== record.revision)
      throw new CopyFault('a staged record was written that is not in effect');
    return { path, record };
  }

  #set(path: string, record: CopiedRecord | undefined): Change[] {
    const old = this.#records.get(path);
    if (record === undefined) {
      if (old === undefined) return [];
      this.#records.delete(path);
      this.#paths.delete(path);
      return [{ path, revision: this.#revision, deleted: true }];
    }
    this.#records.set(path, record);
    if (old === undefined) this.#paths.add(path);
    return old?.revision === record.revision ? [] : [{ path, revision: record.revision, deleted: false }];
  }

  #take(id: number, { deleted, row }: EtcdEvent): void {
    if (deleted) this.#nodes.delete(id);
    else this.#nodes.set(id, row.value);
  }

  #stagedBy({ row }: EtcdEvent): StagedTransaction {
    const writes = this.#chunks.assemble(row.value);
    if (writes === undefined) throw new CopyFault('a staged transaction is not complete');
    return { revision: row.modRevision, writes };
  }

  #takeEffect(staged: StagedTransaction): Change[] {
    this.#staged = staged;
    return staged.writes.flatMap(({ path, value }) => this.#set(path, this.#stagedRecord(path, value, staged.revision)));
  }

  #stagedRecord(path: string, value: Uint8Array | null, revision: number): CopiedRecord | undefined {
    return value === null ? undefined : { value, revision, modRevision: this.#records.get(path)?.modRevision ?? 0 };
  }

  #name(kind: Named, { deleted, row }: EtcdEvent): void {
    if (kind === 'marker') this.#marker = seen(row, markerOf(row));
    else if (kind === 'reserved') {
      this.#reserved = countOf(row);
      this.#reservedRevision = row.modRevision;
    } else if (kind === 'level')
      this.#level = deleted ? { level: 0, modRevision: 0 } : { level: countOf(row), modRevision: row.modRevision };
    else if (kind === 'cluster') this.#cluster = textOf(row);
    else if (kind === 'space') {
      this.#space = spaceOf(row);
      this.#spaceRevision = row.modRevision;
    } else if (kind === 'heartbeat') this.#heartbeat = deleted ? undefined : { revision: row.modRevision, owner: textOf(row) };
    else if (kind === 'active')
      this.#active = deleted
        ? undefined
        : { owner: textOf(row), createRevision: row.createRevision, modRevision: row.modRevision };
  }
}

const textOf = ({ value }: EtcdRow): string => Buffer.from(value).toString();

function countOf(row: EtcdRow): number {
  const text = textOf(row);
  if (!/^\d{1,15}$/.test(text)) throw new CopyFault('the number of reserved values, or the feature level, is not a number');
  return Number(text);
}

const seen = ({ modRevision, version }: EtcdRow, { attempt }: Marker): SeenMarker => ({
  revision: modRevision,
  version,
  attempt,
});

function spaceOf(row: EtcdRow): LiveSpace {
  const space = decodeSpace(row.value);
  if (space === undefined) throw new CopyFault('the key that names the space of the records is not readable');
  return space;
}

function markerOf(row: EtcdRow): Marker {
  const marker = decodeMarker(row.value);
  if (marker === undefined) throw new CopyFault('the marker of a commit is not readable');
  return marker;
}

function recordOf(row: EtcdRow): CopiedRecord {
  const record = decodeRecord(row.value);
  if (record === undefined) throw new CopyFault('a record is not readable');
  return { value: record.value, revision: record.revision || row.modRevision, modRevision: row.modRevision };
}
