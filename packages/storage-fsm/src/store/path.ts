/** Longest path of a record, in bytes of UTF-8. */
export const pathBytesMax = 1024;

/**
 * Why `path` cannot name a record, or undefined when it can: `/`-separated UTF-8 of 1 to 1,024 bytes, without empty
 * segments and without control characters (Unicode category Cc).
 */
export function pathFault(path: string): string | undefined {
  if (!path.isWellFormed()) return 'is not well-formed Unicode';
  if (path === '' || path.startsWith('/') || path.endsWith('/') || path.includes('//')) return 'has an empty segment';
  if (/\p{Cc}/u.test(path)) return 'has a control character';
  if (Buffer.byteLength(path) > pathBytesMax) return `is longer than ${pathBytesMax} bytes`;
  return undefined;
}

/** Order of two paths by their bytes in UTF-8, as `level` keeps them; negative when `a` comes first. */
export function comparePaths(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const [left, right] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (left !== right) return utf8Rank(left) - utf8Rank(right);
  }
  return a.length - b.length;
}

/** The first text, by its bytes in UTF-8, behind all that begin with `prefix`; undefined when every longer or greater one does. */
export function behindAllBelow(prefix: string): string | undefined {
  let end = prefix.length;
  while (prefix.endsWith(lastCharacter, end)) end -= lastCharacter.length;
  if (end === 0) return undefined;
  const last = prefix.codePointAt(end - 1) ?? 0;
  const isPair = last >= 0xdc00 && last <= 0xdfff;
  const at = isPair ? end - 2 : end - 1;
  const next = (prefix.codePointAt(at) ?? 0) + 1;
  return prefix.slice(0, at) + String.fromCodePoint(next === firstSurrogate ? behindSurrogates : next);
}

const lastCharacter = '\u{10ffff}';
const firstSurrogate = 0xd800;
const behindSurrogates = 0xe000;

/** UTF-16 sorts surrogates (code points from U+10000) before U+E000 to U+FFFF; UTF-8 sorts them behind. */
function utf8Rank(codeUnit: number): number {
  if (codeUnit < 0xd800) return codeUnit;
  return codeUnit < 0xe000 ? codeUnit + 0x2000 : codeUnit - 0x800;
}
