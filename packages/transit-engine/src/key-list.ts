import type { RangePage, Store } from '@transitd/storage-fsm';
import { TransitError } from './errors.ts';
import type { Paths } from './paths.ts';

/** Names behind `after`, `limit` of them at most; all without a positive limit. */
export interface ListRequest {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/** More than the longest name, so that a longer `after` can be cut: no name lies between, and a path has an end. */
const afterLengthMax = 600;

/** Names in ascending byte order. @throws TransitError `not_found` when there is none to show */
export async function listKeys(store: Store, { keys: prefix }: Paths, { after = '', limit = 0 }: ListRequest): Promise<string[]> {
  const wanted = limit > 0 ? limit : Number.POSITIVE_INFINITY;
  const names: string[] = [];
  let from: string | undefined = prefix + after.slice(0, afterLengthMax).toWellFormed();
  while (from !== undefined && names.length < wanted) {
    const page: RangePage = await store.range({ prefix, after: from });
    for (const { path } of page.records.slice(0, wanted - names.length)) names.push(path.slice(prefix.length));
    from = page.next;
  }
  if (names.length === 0) throw new TransitError('not_found', 'no keys');
  return names;
}
