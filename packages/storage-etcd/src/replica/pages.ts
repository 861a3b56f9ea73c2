import { comparePaths } from '@transitd/storage-fsm';
import type { Etcd, EtcdRangeAnswer } from '../etcd.ts';

export interface PagedRange {
  readonly key: string;
  /** The exclusive end. */
  readonly end: string;
  /** Most rows of a page. */
  readonly limit: number;
  /** Reads all pages as of the revision of the first one. */
  readonly isPinned: boolean;
}

/**
 * Reads a range page by page. etcd walks through all keys of a range to count them, whatever the limit. So each page but the first is read
 * from a narrow range: the keys that begin like the key before it.
 * @throws EtcdError
 */
export async function* pagesOf(
  etcd: Pick<Etcd, 'range'>,
  { key, end, limit, isPinned }: PagedRange,
): AsyncGenerator<EtcdRangeAnswer> {
  let [from, shared] = [key, 0];
  let pinned: number | undefined;
  while (from !== end) {
    const until = endOfBeginning(from, shared, end);
    const page = await etcd.range({ key: from, end: until, limit, ...(pinned !== undefined && { revision: pinned }) });
    if (isPinned) pinned ??= page.revision; // a later page names the present revision, not its own
    yield page;
    const [first, last] = [page.rows[0], page.rows.at(-1)];
    if (page.more && first !== undefined && last !== undefined) {
      shared = Math.max(shared, sharedLength(first.key, last.key));
      from = `${last.key}\0`;
    } else {
      if (page.rows.length < limit / 4) shared = Math.max(0, shared - 1);
      from = until;
    }
  }
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
