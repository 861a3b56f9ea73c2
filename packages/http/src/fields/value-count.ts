import { jsonValuesMax } from './json.ts';

const [quote, comma, openBracket, openBrace, backslash] = [0x22, 0x2c, 0x5b, 0x7b, 0x5c];
/** Texts, and bytes outside of them, that are looked at: a fraction of a millisecond of work. */
const stepsMax = 128 * 1024;

/** Returns the most values that a body of this length can have: each value needs two characters. */
export const mostValues = ({ length }: Buffer): number => Math.min(jsonValuesMax, Math.ceil(length / 2));

/**
 * Returns the most values that a body can have, without parsing it. The result is exact for a body that is mostly one long text. For any
 * other body it follows from the length.
 */
export function valuesAtMost(body: Buffer): number {
  const most = mostValues(body);
  if (body.includes(backslash)) return most; // a quote may be part of a text
  let values = 1;
  let at = 0;
  for (let steps = 0; at < body.length; steps += 1) {
    if (steps === stepsMax) return most;
    const code = body[at];
    if (code === comma || code === openBracket || code === openBrace) values += 1;
    if (code === quote) at = body.indexOf(quote, at + 1);
    if (at < 0) break; // a text that does not end
    at += 1;
  }
  return Math.min(most, values);
}
