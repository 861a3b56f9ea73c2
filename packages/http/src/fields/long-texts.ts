import { isAscii } from 'node:buffer';

/** A JSON text without its long strings. */
export interface WithoutLongTexts {
  /** The JSON text with a placeholder for each long string. */
  readonly rest: string;
  /**
   * Reads the long strings, which takes time. Returns a function from a placeholder to its string, and from any other string to undefined;
   * undefined if a long string has control characters, which the parser has to refuse.
   */
  readonly texts: () => ((placeholder: string) => string | undefined) | undefined;
}

/** Strings that are looked at: a fraction of a millisecond of work. */
const stringsMax = 256;

const [quote, backslash] = [0x22, 0x5c];
/** Placeholders begin with this character, which a string without escapes cannot contain. */
const nul = '\0';

/**
 * Cuts the long strings out of a JSON text. `JSON.parse` would scan them and copy them to the heap of V8, where a string of a megabyte
 * costs milliseconds; here each becomes a string outside of the heap at once. Whether the rest is valid JSON is left to the parser.
 * Returns undefined if there are no long strings, or if the text needs the parser: it has escapes, characters other than ASCII, or very
 * many strings.
 */
export function withoutLongTexts(bytes: Buffer, bytesMin: number): WithoutLongTexts | undefined {
  if (bytes.length < bytesMin || bytes.includes(backslash) || !isAscii(bytes)) return undefined;
  const places: (readonly [from: number, to: number])[] = [];
  let [rest, end] = ['', 0]; // the rest of the bytes before `end`
  let strings = 0;
  for (let open = bytes.indexOf(quote); open >= 0; strings += 1) {
    const close = bytes.indexOf(quote, open + 1);
    if (close < 0 || strings === stringsMax) return undefined;
    if (close - open > bytesMin) {
      rest += `${bytes.toString('latin1', end, open)}"\\u0000${places.length}"`;
      places.push([open + 1, close]);
      end = close + 1;
    }
    open = bytes.indexOf(quote, close + 1);
  }
  if (places.length === 0) return undefined;
  rest += bytes.toString('latin1', end);
  return {
    rest,
    texts: () => {
      if (places.some(([from, to]) => hasControls(bytes, from, to))) return undefined;
      const texts = places.map(([from, to]) => bytes.toString('latin1', from, to));
      return (placeholder) => (placeholder.startsWith(nul) ? texts[Number(placeholder.slice(1))] : undefined);
    },
  };
}

/** Returns whether ASCII bytes have one below U+0020, which JSON strings must escape. Looks at four bytes at a time. */
function hasControls(bytes: Buffer, from: number, to: number): boolean {
  const aligned = from + (-(bytes.byteOffset + from) & 3);
  if (aligned >= to) return bytes.subarray(from, to).some(isControl);
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + aligned, (to - aligned) >> 2);
  let borrows = 0;
  for (let at = 0; at < words.length; at++) borrows |= (words[at] ?? 0) - 0x20202020; // a smaller byte sets the high bit of its place
  const rest = aligned + 4 * words.length;
  return (
    (borrows & 0x80808080) !== 0 || bytes.subarray(from, aligned).some(isControl) || bytes.subarray(rest, to).some(isControl)
  );
}

const isControl = (byte: number): boolean => byte < 0x20;
