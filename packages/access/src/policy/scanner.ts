import type { Steps } from '@transitd/event-loop';
import { documentDepthMax, PolicyMistake, type Value } from './document.ts';

/** Text that is skipped between two tokens. */
export interface Space {
  /** A sticky pattern that also matches the empty string. */
  readonly blank: RegExp;
  readonly comments: boolean;
}

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/** Scans a text from start to end. HCL and JSON share it. */
export class Scanner {
  readonly text: string;
  readonly #space: Space;
  #at = 0;
  #depth = 0;

  constructor(text: string, space: Space) {
    this.text = text;
    this.#space = space;
  }

  /** Offset of the next token. */
  get at(): number {
    return this.#at;
  }

  /** The next character; empty at the end of the text. */
  get next(): string {
    return this.text.charAt(this.#at);
  }

  mistake(message: string, at = this.#at): PolicyMistake {
    return new PolicyMistake(at, at >= this.text.length ? `${message}, found the end of the text` : message);
  }

  skipSpace(): void {
    for (;;) {
      this.#space.blank.lastIndex = this.#at;
      this.#space.blank.test(this.text);
      this.#at = this.#space.blank.lastIndex; // the pattern always matches, possibly the empty string
      if (!this.#space.comments || !this.#skipComment()) return;
    }
  }

  /** Consumes `token` if the text continues with it. */
  take(token: string): boolean {
    if (!this.text.startsWith(token, this.#at)) return false;
    this.#at += token.length;
    return true;
  }

  expect(token: string): void {
    if (!this.take(token)) throw this.mistake(`expected "${token}"`);
  }

  /** Consumes and returns the text that the sticky pattern matches here; undefined when it does not match. */
  match(sticky: RegExp): string | undefined {
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  /** Runs `read` one nesting level deeper. @throws PolicyMistake beyond the deepest level */
  *nested<T extends Value>(read: () => Steps<T>): Steps<T> {
    this.#depth += 1;
    if (this.#depth > documentDepthMax) throw this.mistake(`more than ${documentDepthMax} levels of nesting`);
    const value = yield* read();
    this.#depth -= 1;
    return value;
  }

  /** Consumes a double-quoted single-line string, starting at its opening quote. */
  string(): string {
    const open = this.#at;
    const parts: string[] = [];
    let from = open + 1;
    for (let at = from; ; at += 1) {
      const code = this.text.charCodeAt(at);
      if (Number.isNaN(code)) throw this.mistake('a string is not closed', open);
      if (code < 0x20) throw this.mistake('a string contains a line break or another control character', at);
      if (code !== 0x22 && code !== 0x5c) continue;
      parts.push(this.text.slice(from, at));
      this.#at = at;
      if (code === 0x22) break;
      parts.push(this.#escape());
      from = this.#at;
      at = from - 1;
    }
    this.#at += 1;
    const value = parts.join('');
    if (!value.isWellFormed()) throw this.mistake('a string contains half of a surrogate pair', open);
    return value;
  }

  #escape(): string {
    const at = this.#at;
    const simple = escapes[this.text.charAt(at + 1)];
    if (simple !== undefined) {
      this.#at += 2;
      return simple;
    }
    const hex = this.match(/\\u[0-9a-fA-F]{4}/y) ?? this.match(/\\U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}/y);
    if (hex === undefined) throw this.mistake('a string contains an unknown escape', at);
    return String.fromCodePoint(Number.parseInt(hex.slice(2), 16));
  }

  #skipComment(): boolean {
    if (this.next === '#' || this.text.startsWith('//', this.#at)) {
      const end = this.text.indexOf('\n', this.#at);
      this.#at = end < 0 ? this.text.length : end;
      return true;
    }
    if (!this.text.startsWith('/*', this.#at)) return false;
    const end = this.text.indexOf('*/', this.#at + 2);
    if (end < 0) throw this.mistake('a comment is not closed');
    this.#at = end + 2;
    return true;
  }
}
