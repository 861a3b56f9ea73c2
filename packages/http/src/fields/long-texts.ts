import { isAscii } from 'node:buffer';

/** A JSON text without its long strings. */
export interface WithoutLongTexts {
  /** The JSON text with a placeholder for each long string. */
  readonly rest: string;
  /** Returns the long string of a placeholder; undefined for any other string. */
  readonly textOf: (placeholder: string) => string | undefined;
}

/** Strings that are looked at: a fraction of a millisecond of work. */
const stringsMax = 256;

const [quote, backslash] = [0x22, 0x5c];
/** Placeholders begin with this character, which a string without escapes cannot contain. */
const nul = '\0';

/**
 * Cuts the long strings out of a JSON text. `JSON.parse` would scan them and copy them to the heap of V8, where a string of a megabyte
 * costs milliseconds; here each becomes a string outside of the heap at once. Whether the rest is valid JSON is left to the parser.
 * Returns undefined if there are no long strings, or if the text needs the parser: it has escapes, characters other than ASCII, control
 * characters in a long string, or very many strings.
 */
export function withoutLongTexts(bytes: Buffer, bytesMin: number): WithoutLongTexts | undefined {
  if (bytes.length < bytesMin || bytes.includes(backslash) || !isAscii(bytes)) return undefined;
  const texts: string[] = [];
  let [rest, end] = ['', 0]; // the rest of the bytes before `end`
  let strings = 0;
  for (let open = bytes.indexOf(quote); open >= 0; strings += 1) {
    const close = bytes.indexOf(quote, open + 1);
    if (close < 0 || strings === stringsMax) return undefined;
    if (close - open > bytesMin) {
      if (hasControls(bytes, open + 1, close)) return undefined;
      rest += `${bytes.toString('latin1', end, open)}"\\u0000${texts.length}"`;
      texts.push(bytes.toString('latin1', open + 1, close));
      end = close + 1;
    }
    open = bytes.indexOf(quote, close + 1);
  }
  if (texts.length === 0) return undefined;
  rest += bytes.toString('latin1', end);
  return { rest, textOf: (placeholder) => (placeholder.startsWith(nul) ? texts[Number(placeholder.slice(1))] : undefined) };
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
