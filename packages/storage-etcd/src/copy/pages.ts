import {
  checkQuery,
  mergePathPages,
  type PathPage,
  pageBytesMax,
  pageRecordsMax,
  type RangePage,
  type RangeQuery,
  type Row,
  takePage,
} from '@transitd/storage-fsm';
import type { Copy } from './copy.ts';

/** Returns the records of a range as of now. @throws StoreError for a query that is not valid */
export function recordsPage(copy: Copy, query: RangeQuery): Promise<RangePage> {
  checkQuery(query);
  // All rows before the first await: the copy may change later.
  const rows: Row[] = [];
  let bytes = 0;
  for (const path of copy.paths(query)) {
    if (rows.length > limitOf(query) || bytes > 2 * pageBytesMax) break;
    const record = copy.get(path);
    if (record === undefined) continue;
    rows.push({ path, value: Buffer.from(record.value), revision: record.revision });
    bytes += record.value.length;
  }
  return takePage(query, rows);
}

/** Returns the paths of a range as of now. @throws StoreError for a query that is not valid */
export function pathsPage(copy: Copy, query: RangeQuery): PathPage {
  checkQuery(query);
  const limit = limitOf(query);
  const paths: string[] = [];
  for (const path of copy.paths(query)) if (paths.push(path) > limit) break;
  return mergePathPages([{ paths }], limit);
}

const limitOf = ({ limit }: RangeQuery): number => Math.min(limit ?? pageRecordsMax, pageRecordsMax);
