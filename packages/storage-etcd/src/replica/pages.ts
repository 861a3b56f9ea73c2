import { comparePaths } from '@transitd/storage-fsm';
import { type Etcd, EtcdError, type EtcdRangeAnswer, type EtcdRow } from '../etcd.ts';

export interface PagedRange {
  readonly key: string;
  /** The exclusive end. */
  readonly end: string;
  /** Most rows of a page. */
  readonly limit: number;
  /** Reads all pages as of the revision of the first one. */
  readonly isPinned: boolean;
}

/** Bytes that a page should have: a quarter of what the client accepts, as the next rows may be larger than the last ones. */
const pageBytes = 1024 * 1024;
/** Rows of the first page, of which nothing is known. */
const firstRows = 16;

/**
 * Reads a range page by page. etcd limits a page by rows and not by bytes, so the weight of each page decides how many rows the next one
 * has. A page that is too large, or does not arrive in time, is read again with a single row: then only a row that does not arrive ends the
 * reading.
 *
 * etcd walks through all keys of a range to count them, whatever the limit. So each page but the first is read
 * from a narrow range: the keys that begin like the key before it.
 * @throws EtcdError
 */
export async function* pagesOf(
  etcd: Pick<Etcd, 'range'>,
  { key, end, limit, isPinned }: PagedRange,
): AsyncGenerator<EtcdRangeAnswer> {
  let [from, shared] = [key, 0];
  let pinned: number | undefined;
  let wanted = Math.min(firstRows, limit);
  while (from !== end) {
    const until = endOfBeginning(from, shared, end);
    let page: EtcdRangeAnswer;
    try {
      page = await etcd.range({ key: from, end: until, limit: wanted, ...(pinned !== undefined && { revision: pinned }) });
    } catch (error) {
      if (!(error instanceof EtcdError) || (error.kind !== 'too_large' && error.kind !== 'unknown')) throw error;
      if (wanted === 1) throw error.kind === 'unknown' ? error : tooLarge(from, error);
      wanted = 1;
      continue;
    }
    if (isPinned) pinned ??= page.revision; // a later page names the present revision, not its own
    yield page;
    const last = page.rows.at(-1);
    if (page.more && last !== undefined) {
      shared = Math.max(shared, sharedLength(from, last.key));
      from = `${last.key}\0`;
    } else {
      if (page.rows.length < wanted / 4) shared = Math.max(0, shared - 1);
      from = until;
    }
    wanted = Math.min(limit, 2 * wanted, rowsOfPage(page.rows));
  }
}

/** No replica writes such a row. */
const tooLarge = (from: string, cause: EtcdError): EtcdError =>
  new EtcdError('too_large', `the first key from ${JSON.stringify(from)} on is too large: ${cause.message}`, { cause });

/** Returns how many rows like these make a page. */
function rowsOfPage(rows: readonly EtcdRow[]): number {
  const bytes = rows.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
  return bytes === 0 ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor((pageBytes * rows.length) / bytes));
}

/** Returns the first key after all that begin like `key`, with as many of its characters; `end` if that comes later. */
export function endOfBeginning(key: string, characters: number, end: string): string {
  const beginning = [...key].slice(0, characters);
  for (let last = beginning.pop(); last !== undefined; last = beginning.pop()) {
    const next = followerOf(last.codePointAt(0) ?? 0);
    if (next === undefined) continue;
    const until = beginning.join('') + next;
    return comparePaths(until, end) < 0 ? until : end;
  }
  return end;
}

const [surrogatesFrom, surrogatesTo, lastCodePoint] = [0xd800, 0xdfff, 0x10ffff];

/** Returns the character after this one, in the order of UTF-8; undefined for the last one. */
function followerOf(codePoint: number): string | undefined {
  const next = codePoint + 1 === surrogatesFrom ? surrogatesTo + 1 : codePoint + 1;
  return next > lastCodePoint ? undefined : String.fromCodePoint(next);
}

function sharedLength(left: string, right: string): number {
  const [one, other] = [[...left], [...right]];
  const at = one.findIndex((character, index) => character !== other[index]);
  return at < 0 ? one.length : at;
}
