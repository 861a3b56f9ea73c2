import type { HashText } from './audit-key.ts';

/** Names of algorithms, recorded in clear in the fields that hold one. Any other text in these fields is hashed. */
const algorithms = [
  /aes(?:128|192|256)-[a-z0-9]{3,8}|x?chacha20-poly1305/,
  /ed25519|ecdsa-p(?:256|384|521)|rsa-(?:2048|3072|4096)|ml-dsa|hybrid|hmac|managed_key/,
  /sha(?:1|2|3)(?:-\d{3})?|none|pss|pkcs1v15|asn1|jws/,
];
const algorithm = new RegExp(`^(?:${algorithms.map(({ source }) => source).join('|')})$`);
const algorithmFields = new Set(['type', 'hash_algorithm', 'signature_algorithm', 'marshaling_algorithm', 'key_type']);

/**
 * Returns the members of a request or a response for an entry: every string at any depth replaced by its hash; numbers, booleans and names
 * of members unchanged.
 */
export function hashedData(value: unknown, hash: HashText, field = ''): unknown {
  if (typeof value === 'string') return algorithmFields.has(field) && algorithm.test(value) ? value : hash(value);
  if (Array.isArray(value)) return value.map((item) => hashedData(item, hash));
  if (typeof value !== 'object' || value === null) return value;
  const shown: Record<string, unknown> = Object.create(null);
  for (const [name, member] of Object.entries(value)) shown[name] = hashedData(member, hash, name);
  return shown;
}

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
export function withoutTextsOf(data: unknown, message: string, hash: HashText): string {
  let result = '';
  let shown = 0;
  for (const { begins, ends, text } of quotesIn(message, data)) {
    if (ends <= shown) continue;
    result += message.slice(shown, begins) + hash(text);
    shown = ends;
  }
  return result + message.slice(shown);
}

/** A part of a message that is a string of the request, or its beginning. */
interface Quote {
  readonly begins: number;
  readonly ends: number;
  readonly text: string;
}

/** Returns the quotes in the order of the message; the longest one if several begin at one place. They may overlap. */
function quotesIn(message: string, data: unknown): readonly Quote[] {
  const longest = new Map<number, Quote>();
  for (const text of new Set(textsIn(data))) {
    if (text.length < textCharsMin) continue;
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

function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) yield* textsIn(member);
}
