// Collects the secrets of a server under test and searches everything that it writes for others.
import { randomBytes } from 'node:crypto';
import { shapesOf } from './secret-shapes.ts';

/** Part of every secret that the tests plant (plaintexts, passwords): random for each run, so one search finds all of them. */
export const mark = `planted-${randomBytes(12).toString('hex')}`;
/** Returns a secret for a field that accepts any text. */
export const planted = (text: string): string => `${text} ${mark}`;

/** Shorter secrets are not searched for: they would match by chance, or are ordinary words. */
const secretBytesMin = 12;
/** Maximum number of secrets besides the mark. The secrets of a long test are alike, so the first ones represent the rest. */
const secretsMax = 256;

/** Longer texts are neither parsed nor learnt: that would stop the test, and the requests that it is sending, for seconds. */
const learntCharsMax = 1_000_000;

/** Members of bodies and responses that hold secrets: as text, or as bytes in base64. */
const texts =
  /^(?:password|pin|\w*jwt|otp|(?:(?:client|root|new|encoded|wrapping)_)?token|secret_id|role_id|(?:(?:secret_id|wrapped)_)?accessor)$/;
const encoded = /^(?:plaintext|input|context|associated_data|backup|key|random_bytes)$/;
const lists = /^(?:keys|keys_base64|recovery_keys|recovery_keys_base64)$/;
/** A share in hex or base64, not the name of a key or a user. */
const share = /^(?:[0-9a-f]{60,}|[A-Za-z0-9+/]{40,}={0,2})$/;

const fromBase64 = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
};

export class SecretWatch {
  readonly #secrets = new Map<string, { readonly what: string; readonly shapes: readonly Buffer[] }>();

  constructor() {
    this.add('the planted mark', mark);
  }

  get size(): number {
    return this.#secrets.size;
  }

  add(what: string, secret: string | Buffer): void {
    const bytes = Buffer.from(secret as string);
    const id = bytes.toString('latin1');
    if (bytes.length < secretBytesMin || this.#secrets.size > secretsMax || this.#secrets.has(id)) return;
    if (what !== 'the planted mark' && bytes.includes(mark)) return;
    this.#secrets.set(id, { what, shapes: shapesOf(bytes) });
  }

  /** Adds the bytes that the text encodes in base64, or the text itself if it is not base64. */
  addEncoded(what: string, text: string): void {
    this.add(what, fromBase64(text) ?? text);
  }

  /** Adds the values of secret members of a body or a response, at any depth. @param json - parsed, or its text */
  learn(json: unknown): void {
    if (typeof json === 'string' && json.length > learntCharsMax) return;
    try {
      this.#learn(typeof json === 'string' ? JSON.parse(json) : json);
    } catch {
      // not JSON, so no members
    }
  }

  /** Returns one sentence for each secret found, without the secret. */
  findings(where: string, content: Buffer | string): string[] {
    const bytes = Buffer.from(content as string);
    return [...this.#secrets.values()].flatMap(({ what, shapes }) => {
      const at = shapes.map((shape) => bytes.indexOf(shape)).find((index) => index >= 0);
      return at === undefined ? [] : [`${what} is in ${where}, at byte ${at}`];
    });
  }

  #learn(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'string') {
        if (member.length > learntCharsMax) continue;
        if (texts.test(name)) this.add(name, member);
        else if (encoded.test(name)) this.addEncoded(name, member);
      } else if (Array.isArray(member) && lists.test(name)) {
        for (const key of member) if (typeof key === 'string' && share.test(key)) this.add(name, key);
      } else this.#learn(member);
    }
  }
}
