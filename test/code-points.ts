// Texts of any code points for property tests.
import fc from 'fast-check';

const firstSurrogate = 0xd800;
const surrogates = 0x800;

/**
 * Any code point that a well-formed text may contain, as a `unit` of `fc.string`. The unit `binary` of fast-check draws the same ones, but
 * first makes a table of all of them, which takes three seconds in every process.
 */
export const codePoint: fc.Arbitrary<string> = fc.nat({ max: 0x10ffff - surrogates }).map(
  (at) => String.fromCodePoint(at < firstSurrogate ? at : at + surrogates),
  (text) => numberOf(text),
);

/** The reverse, with which fast-check shrinks given texts. @throws Error for anything else */
function numberOf(text: unknown): number {
  const point = typeof text === 'string' && text.isWellFormed() ? text.codePointAt(0) : undefined;
  if (point === undefined || text !== String.fromCodePoint(point)) throw new Error('not one code point');
  return point < firstSurrogate ? point : point - surrogates;
}
