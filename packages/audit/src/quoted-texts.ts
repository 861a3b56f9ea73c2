import type { Steps } from '@transitd/event-loop';
import type { HashText } from './audit-key.ts';

/** A path or a message contains a token only by mistake; the token is hashed there too. */
const tokens = /(?<![\w.-])(?:[sbr]|hv[sbr])\.[\w-]{20,}/g;

/** Replaces the tokens in a text by their hashes. */
export const withoutTokens = (text: string, hash: HashText): string => text.replace(tokens, hash);

/** Shorter strings are not replaced: they are not secrets, and may occur in any message by chance. */
const textCharsMin = 4;
/** When a message quotes only the beginning of a string, this many characters suffice to recognize it. */
const headChars = 16;

/**
 * Replaces strings of the request that a message quotes, completely or only their beginning, by their hashes. Looks for them in the message
 * only, never in the hashes: otherwise strings such as `hmac` would multiply them.
 */
export function* withoutTextsOf(data: unknown, message: string, hash: HashText): Steps<string> {
  let result = '';
  let shown = 0;
  for (const { begins, ends, text } of yield* quotesIn(message, data)) {
    if (ends <= shown) continue;
    result += message.slice(shown, begins) + hash(text);
    shown = ends;
  }
  return result + message.slice(shown);
}

/** A part of a message that repeats a string of the request, or the beginning of one. */
interface Quote {
  readonly begins: number;
  readonly ends: number;
  readonly text: string;
}

/** Returns the quotes in the order of the message; the longest one if several begin at one place. They may overlap. */
function* quotesIn(message: string, data: unknown): Steps<readonly Quote[]> {
  const longest = new Map<number, Quote>();
  const seen = new Set<string>();
  for (const text of textsIn(data)) {
    yield;
    if (text.length < textCharsMin || seen.has(text)) continue;
    seen.add(text);
    const head = text.slice(0, headChars);
    for (let begins = message.indexOf(head); begins >= 0; ) {
      let ends = begins + head.length;
      while (ends - begins < text.length && text[ends - begins] === message[ends]) ends += 1;
      if (ends > (longest.get(begins)?.ends ?? 0)) longest.set(begins, { begins, ends, text });
      begins = message.indexOf(head, ends);
    }
  }
  return [...longest.values()].sort((one, other) => one.begins - other.begins);
}

/** Yields numbers too, because an operation may read one as a text. */
function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'number') yield String(value);
  else if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) yield* textsIn(member);
}
