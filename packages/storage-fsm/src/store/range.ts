import { comparePaths } from './path.ts';
import type { RangePage, RangeQuery } from './store.ts';

/** Maximum number of records in a page, and the default limit of a query. */
export const pageRecordsMax = 1000;

/** A page ends early after this many bytes of values. */
export const pageBytesMax = 1024 * 1024;

export type Row = RangePage['records'][number];

/** An applied write that `level` may not hold yet; `value` is null for a deletion. */
export interface PendingRow {
  readonly path: string;
  readonly value: Uint8Array | null;
  readonly revision: number;
}

/** @throws TypeError for a limit that is not a positive integer or a string that is not well-formed: a bug in the calling code */
export function checkQuery({ prefix, after = '', limit = pageRecordsMax }: RangeQuery): void {
  if (!Number.isInteger(limit) || limit < 1) throw new TypeError('the limit of a range must be a positive integer');
  if (!prefix.isWellFormed() || !after.isWellFormed()) throw new TypeError('the prefix or start of a range is not well-formed');
}

/** Returns whether the query covers `path`. */
export const inRange = ({ prefix, after = '' }: RangeQuery, path: string): boolean =>
  path.startsWith(prefix) && comparePaths(path, after) > 0;

/** Collects rows, which ascend by path, until a page is full. Reads one row more than the page holds, to learn whether more follow. */
export async function takePage(
  { limit = pageRecordsMax }: RangeQuery,
  rows: AsyncIterable<Row> | Iterable<Row>,
): Promise<RangePage> {
  const records: Row[] = [];
  const recordsMax = Math.min(limit, pageRecordsMax);
  let bytes = 0;
  for await (const row of rows) {
    const last = records.at(-1);
    if (last !== undefined && (records.length >= recordsMax || bytes >= pageBytesMax)) return { records, next: last.path };
    records.push(row);
    bytes += row.value.length;
  }
  return { records };
}

/** Merges stored rows with the pending writes that override them; both ascend by path. */
export async function* mergeRows(stored: AsyncIterable<Row>, pending: readonly PendingRow[]): AsyncGenerator<Row> {
  let at = 0;
  for await (const row of stored) {
    for (let next = pending[at]; next !== undefined && comparePaths(next.path, row.path) < 0; next = pending[at]) {
      yield* present(next);
      at += 1;
    }
    const same = pending[at];
    if (same?.path === row.path) {
      yield* present(same);
      at += 1;
    } else yield row;
  }
  for (const row of pending.slice(at)) yield* present(row);
}

/** Merges several sources, each ascending by path, into one that ascends. */
export async function* mergeAscending(sources: readonly AsyncGenerator<Row>[]): AsyncGenerator<Row> {
  try {
    const heads = await Promise.all(sources.map((source) => source.next()));
    for (;;) {
      let first: number | undefined;
      let row: Row | undefined;
      heads.forEach((head, i) => {
        if (head.done === true || (row !== undefined && comparePaths(head.value.path, row.path) > 0)) return;
        [first, row] = [i, head.value];
      });
      if (first === undefined || row === undefined) return;
      yield row;
      heads[first] = (await sources[first]?.next()) ?? { done: true, value: undefined };
    }
  } finally {
    await Promise.all(sources.map((source) => source.return(undefined)));
  }
}

/** Yields a copy that belongs to the reader, or nothing for a deletion. */
function* present({ path, value, revision }: PendingRow): Generator<Row> {
  if (value !== null) yield { path, value: Buffer.from(value), revision };
}
