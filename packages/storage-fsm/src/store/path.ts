/** Maximum length of a record's path, in bytes of UTF-8. */
export const pathBytesMax = 1024;

/**
 * Returns why `path` cannot name a record, or undefined if it can. A valid path is `/`-separated UTF-8 of 1 to 1,024 bytes, without
 * empty segments and without control characters (Unicode category Cc).
 */
export function pathFault(path: string): string | undefined {
  if (!path.isWellFormed()) return 'is not well-formed Unicode';
  if (path === '' || path.startsWith('/') || path.endsWith('/') || path.includes('//')) return 'has an empty segment';
  if (/\p{Cc}/u.test(path)) return 'has a control character';
  if (Buffer.byteLength(path) > pathBytesMax) return `is longer than ${pathBytesMax} bytes`;
  return undefined;
}

/** Compares two paths by their UTF-8 bytes, the order of `level`'s keys; negative when `a` comes first. */
export function comparePaths(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (left !== right) return utf8Rank(left) - utf8Rank(right);
  }
  return a.length - b.length;
}

/**
 * Returns the exclusive upper bound of all strings that begin with `prefix`, by their UTF-8 bytes. Undefined if there is no bound, because
 * every string that sorts after `prefix` begins with it.
 */
export function prefixUpperBound(prefix: string): string | undefined {
  let end = prefix.length;
  while (prefix.endsWith(lastCharacter, end)) end -= lastCharacter.length;
  if (end === 0) return undefined;
  const last = prefix.codePointAt(end - 1) ?? 0;
  const isPair = last >= 0xdc00 && last <= 0xdfff;
  const at = isPair ? end - 2 : end - 1;
  const next = (prefix.codePointAt(at) ?? 0) + 1;
  return prefix.slice(0, at) + String.fromCodePoint(next === firstSurrogate ? afterSurrogates : next);
}

const lastCharacter = '\u{10ffff}';
const firstSurrogate = 0xd800;
const afterSurrogates = 0xe000;

/** UTF-16 sorts surrogates (code points from U+10000) before U+E000 to U+FFFF; UTF-8 sorts those code points after them. */
function utf8Rank(codeUnit: number): number {
  if (codeUnit < 0xd800) return codeUnit;
  return codeUnit < 0xe000 ? codeUnit + 0x2000 : codeUnit - 0x800;
}
