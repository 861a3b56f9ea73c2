import type { RangePage, Store } from './store.ts';

/**
 * Yields all records whose path starts with `prefix`, page by page, ascending by path.
 * @param after - begins after this path
 * @throws StoreError
 */
export async function* pagesBelow(
  store: Pick<Store, 'range'>,
  { prefix, after }: { readonly prefix: string; readonly after?: string },
): AsyncGenerator<RangePage['records'], void, undefined> {
  let next = after;
  do {
    const page: RangePage = await store.range({ prefix, ...(next !== undefined && { after: next }) });
    yield page.records;
    next = page.next;
  } while (next !== undefined);
}

/** Returns what follows `prefix` in the path of each record, ascending by path. @throws StoreError */
export async function namesBelow(store: Pick<Store, 'range'>, prefix: string): Promise<string[]> {
  const names: string[] = [];
  for await (const records of pagesBelow(store, { prefix })) names.push(...records.map(({ path }) => path.slice(prefix.length)));
  return names;
}
