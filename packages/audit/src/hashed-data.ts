import type { HashText } from './audit-key.ts';

/** Words of algorithms, shown as they are in the fields that name one; any other text in these fields is hashed like all others. */
const algorithm =
  /^(?:aes(?:128|192|256)-[a-z0-9]{3,8}|x?chacha20-poly1305|ed25519|ecdsa-p(?:256|384|521)|rsa-(?:2048|3072|4096)|ml-dsa|hybrid|hmac|managed_key|sha(?:1|2|3)(?:-\d{3})?|none|pss|pkcs1v15|asn1|jws)$/;
const algorithmFields = new Set(['type', 'hash_algorithm', 'signature_algorithm', 'marshaling_algorithm', 'key_type']);

/**
 * The members of a request or an answer as an entry shows them: every string as its hash, however deep it lies; numbers, booleans
 * and names of members as they are.
 */
export function hashedData(value: unknown, hash: HashText, field = ''): unknown {
  if (typeof value === 'string') return algorithmFields.has(field) && algorithm.test(value) ? value : hash(value);
  if (Array.isArray(value)) return value.map((item) => hashedData(item, hash));
  if (typeof value !== 'object' || value === null) return value;
  const shown: Record<string, unknown> = Object.create(null);
  for (const [name, member] of Object.entries(value)) shown[name] = hashedData(member, hash, name);
  return shown;
}

/** Tokens stand in a path or a message only by mistake; their place is hashed then. */
const tokens = /(?<![\w.-])(?:[sbr]|hv[sbr])\.[\w-]{20,}/g;

export const withoutTokens = (text: string, hash: HashText): string => text.replace(tokens, hash);

/** Shorter texts are no secrets, and would be found in any message. */
const textCharsMin = 4;
/** By so many characters a text is known where a message shows only its beginning. */
const headChars = 16;

/** A message that repeats texts of the request, whole or by their beginning, shows their hashes instead. */
export function withoutTextsOf(data: unknown, message: string, hash: HashText): string {
  let shown = message;
  for (const text of textsIn(data)) {
    if (text.length < textCharsMin) continue;
    const head = text.slice(0, headChars);
    for (let at = shown.indexOf(head); at >= 0; ) {
      let end = head.length;
      while (end < text.length && shown[at + end] === text[end]) end += 1;
      const stands = hash(text);
      shown = shown.slice(0, at) + stands + shown.slice(at + end);
      at = shown.indexOf(head, at + stands.length);
    }
  }
  return shown;
}

function* textsIn(value: unknown): Generator<string> {
  if (typeof value === 'string') yield value;
  else if (typeof value === 'object' && value !== null) for (const member of Object.values(value)) yield* textsIn(member);
}
