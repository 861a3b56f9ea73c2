// What must not be found: the secrets of a server under test, in whatever it writes for others to read.
import { randomBytes } from 'node:crypto';
import { shapesOf } from './secret-shapes.ts';

/** In every plaintext, password and the like that a test plants: one in a run, so that one search finds all of them. */
export const mark = `planted-${randomBytes(12).toString('hex')}`;
/** A secret for a test that may be any text. */
export const planted = (text: string): string => `${text} ${mark}`;

/** Shorter ones would be found by chance, or are words. */
const secretBytesMin = 12;
/** Beside the mark. What a long test makes is alike: the first of it stand for the rest. */
const secretsMax = 256;

/** Longer texts are not taken apart: that would hold up the test. */
const learntCharsMax = 1_000_000;

/** Members of bodies and answers that hold secrets: as text, or as bytes in base64. */
const texts =
  /^(?:password|token|client_token|root_token|new_token|encoded_token|wrapping_token|secret_id|role_id|accessor|secret_id_accessor|wrapped_accessor|pin|jwt|otp)$/;
const encoded = /^(?:plaintext|input|context|associated_data|backup|key|random_bytes)$/;
const lists = /^(?:keys|keys_base64|recovery_keys|recovery_keys_base64)$/;
/** A share in hex or base64, and no name of a key or a user. */
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

  /** A text, or the bytes that it encodes where it does. */
  addEncoded(what: string, text: string): void {
    this.add(what, fromBase64(text) ?? text);
  }

  /** Adds what stands in those members of a body or an answer that hold secrets, however deep. @param json - parsed, or its text */
  learn(json: unknown): void {
    if (typeof json === 'string' && json.length > learntCharsMax) return;
    try {
      this.#learn(typeof json === 'string' ? JSON.parse(json) : json);
    } catch {
      // no JSON, no members
    }
  }

  /** What is found in a content, each as one sentence that does not repeat it. */
  findings(where: string, content: Buffer | string): string[] {
    const bytes = Buffer.from(content as string);
    return [...this.#secrets.values()].flatMap(({ what, shapes }) => {
      const at = shapes.map((shape) => bytes.indexOf(shape)).find((index) => index >= 0);
      return at === undefined ? [] : [`${what} stands in ${where}, at byte ${at}`];
    });
  }

  #learn(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === 'string') {
        if (texts.test(name)) this.add(name, member);
        else if (encoded.test(name)) this.addEncoded(name, member);
      } else if (Array.isArray(member) && lists.test(name)) {
        for (const key of member) if (typeof key === 'string' && share.test(key)) this.add(name, key);
      } else this.#learn(member);
    }
  }
}
