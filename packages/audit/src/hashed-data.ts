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

/** Replaces strings of the request that a message quotes, completely or only their beginning, by their hashes. */
export function withoutTextsOf(data: unknown, message: string, hash: HashText): string {
  let result = message;
  for (const text of textsIn(data)) {
    if (text.length < textCharsMin) continue;
    const head = text.slice(0, headChars);
    for (let at = result.indexOf(head); at >= 0; ) {
      let end = head.length;
      while (end < text.length && result[at + end] === text[end]) end += 1;
      const hashed = hash(text);
      result = result.slice(0, at) + hashed + result.slice(at + end);
      at = result.indexOf(head, at + hashed.length);
    }
  }
  return result;
}

function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) yield* textsIn(member);
}
