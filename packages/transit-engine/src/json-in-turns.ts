import { nextTurn } from './next-turn.ts';

/** What a text may hold, and what its pieces mean. */
export interface JsonRules {
  /** Arrays and objects within each other. */
  readonly depthMax: number;
  /** One for each comma and each opening bracket. */
  readonly valuesMax: number;
  /** Members of an object; the outermost has the depth 1. */
  membersMax(depth: number): number;
  /** Values parsed in one go, at least 1: an empty container is one. */
  readonly pieceValuesMax?: number;
  /** Characters of a container that is parsed in one go, unless it holds one value alone. */
  readonly pieceCharsMax?: number;
  /** `JSON.parse`, or what knows more than it. */
  parse(piece: string): unknown;
  refusal(reason: string): Error;
}

/** What is parsed in one go where nothing else is said: a few milliseconds' worth, should every name be a new one. */
export const pieceValuesMax = 500;
/** Each container within others is looked at anew, up to here. */
const usualPieceCharsMax = 64 * 1024;
const turnMs = 4;
const [quote, comma, openBracket, closeBracket, openBrace, closeBrace, colon] = [0x22, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d, 0x3a];

/**
 * Parses JSON of any size, and lets other requests be answered meanwhile: what has few values is handed to the parser as it is, what has more is
 * taken apart into its items or members.
 * @throws what `refusal` makes of the reason
 */
export const parseInTurns = (text: string, rules: JsonRules): Promise<unknown> => new Reader(text, rules).whole();

/** Index of the quote that closes the string opened at `open`, or -1. Each backslash is looked at once. */
export function endOfString(text: string, open: number): number {
  for (let from = open + 1; ; ) {
    const end = text.indexOf('"', from);
    if (end < 0) return -1;
    let before = end - 1;
    while (before >= from && text.charCodeAt(before) === 0x5c) before -= 1;
    if ((end - before) % 2 === 1) return end;
    from = end + 1;
  }
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

class Reader {
  readonly #text: string;
  readonly #rules: JsonRules;
  /** Members so far of the objects around the place that a scan is at, by depth; less than 0 within an array. */
  readonly #members: Float64Array;
  readonly #pieceValuesMax: number;
  readonly #pieceCharsMax: number;
  /** The last string that is longer than a piece: it is met once in each container around it. */
  #long = { open: -1, end: -1 };
  #at = 0;
  #values = 0;
  #turnEndsMs = performance.now() + turnMs;

  constructor(text: string, rules: JsonRules) {
    this.#text = text;
    this.#rules = rules;
    this.#pieceValuesMax = rules.pieceValuesMax ?? pieceValuesMax;
    this.#pieceCharsMax = rules.pieceCharsMax ?? usualPieceCharsMax;
    this.#members = new Float64Array(rules.depthMax + 2);
  }

  async whole(): Promise<unknown> {
    this.#skipBlanks();
    const value = this.#small(1) ?? (await this.#large(1));
    if (this.#skipBlanks() < this.#text.length) throw this.#rules.refusal('invalid syntax');
    return value === absent ? null : value;
  }

  /** The value here when it is small, `absent` for null; undefined when it has to be taken apart. */
  #small(depth: number): unknown {
    const end = this.#endOfSmall(depth);
    if (end === undefined) return undefined;
    const piece = this.#text.slice(this.#at, end);
    this.#at = end;
    return this.#parse(piece) ?? absent;
  }

  #parse(piece: string): unknown {
    try {
      return this.#rules.parse(piece);
    } catch (error) {
      throw error instanceof SyntaxError ? this.#rules.refusal('invalid syntax') : error;
    }
  }

  #large(depth: number): Promise<unknown> {
    this.#count(1);
    return this.#text.charCodeAt(this.#at) === openBracket ? this.#array(depth) : this.#object(depth);
  }

  async #array(depth: number): Promise<unknown[]> {
    const items: unknown[] = [];
    do {
      this.#at += 1;
      if (performance.now() >= this.#turnEndsMs) await this.#turn();
      this.#skipBlanks();
      const item = this.#small(depth + 1) ?? (await this.#large(depth + 1));
      items.push(item === absent ? null : item);
    } while (this.#goesOn(closeBracket));
    return items;
  }

  async #object(depth: number): Promise<object> {
    const object: Record<string, unknown> = {};
    const membersMax = this.#rules.membersMax(depth);
    let members = 0;
    do {
      this.#at += 1;
      if (performance.now() >= this.#turnEndsMs) await this.#turn();
      members += 1;
      if (members > membersMax) throw this.#tooManyMembers(membersMax);
      const name = this.#name();
      const value = this.#small(depth + 1) ?? (await this.#large(depth + 1));
      Object.defineProperty(object, name, {
        value: value === absent ? null : value,
        configurable: true,
        enumerable: true,
        writable: true,
      });
    } while (this.#goesOn(closeBrace));
    return object;
  }

  /** A member's name, and the colon behind it. */
  #name(): string {
    const { length } = this.#text;
    const open = this.#skipBlanks();
    if (open < length && this.#text.charCodeAt(open) !== quote) throw this.#rules.refusal('invalid syntax');
    const end = open < length ? endOfString(this.#text, open) : -1;
    if (end < 0) throw this.#cut();
    const name = this.#parse(this.#text.slice(open, end + 1));
    this.#at = end + 1;
    if (this.#skipBlanks() >= length) throw this.#cut();
    if (this.#text.charCodeAt(this.#at) !== colon) throw this.#rules.refusal('invalid syntax');
    this.#at += 1;
    this.#skipBlanks();
    return String(name);
  }

  /** Whether a comma follows, at which it stays; false behind the bracket that closes. */
  #goesOn(close: number): boolean {
    if (this.#skipBlanks() >= this.#text.length) throw this.#cut();
    const code = this.#text.charCodeAt(this.#at);
    if (code === comma) this.#count(1);
    else if (code === close) this.#at += 1;
    else throw this.#rules.refusal('invalid syntax');
    return code === comma;
  }

  /** Where the value that begins here ends, if it is small. Whether it is right is for the parser to say. */
  #endOfSmall(outer: number): number | undefined {
    const text = this.#text;
    const first = text.charCodeAt(this.#at);
    if (this.#at >= text.length) throw this.#cut();
    if (first === quote) return this.#endOfString(this.#at) + 1;
    if (first !== openBracket && first !== openBrace) return this.#endOfWord();
    let depth = outer - 1;
    let values = 0;
    for (let at = this.#at; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === quote) at = this.#endOfString(at);
      else if (code === comma) {
        values += 1;
        const members = (this.#members[depth] ?? 0) + 1;
        this.#members[depth] = members;
        if (members > this.#rules.membersMax(depth)) throw this.#tooManyMembers(this.#rules.membersMax(depth));
      } else if (code === openBrace || code === openBracket) {
        depth += 1;
        values += 1;
        if (depth > this.#rules.depthMax) throw this.#rules.refusal(`more than ${this.#rules.depthMax} levels of nesting`);
        this.#members[depth] = code === openBrace ? 1 : Number.NEGATIVE_INFINITY;
      } else if (code === closeBrace || code === closeBracket) {
        depth -= 1;
        if (depth < outer) {
          this.#count(values);
          return at + 1;
        }
      }
      if (values > this.#pieceValuesMax || (values > 1 && at - this.#at > this.#pieceCharsMax)) return undefined;
    }
    throw this.#cut();
  }

  /** Of a number or a literal. */
  #endOfWord(): number {
    let at = this.#at;
    for (; at < this.#text.length; at += 1) {
      const code = this.#text.charCodeAt(at);
      if (code === comma || code === closeBracket || code === closeBrace || isBlank(code)) break;
    }
    return at;
  }

  #endOfString(open: number): number {
    if (open === this.#long.open) return this.#long.end;
    const end = endOfString(this.#text, open);
    if (end < 0) throw this.#cut();
    if (end - open > this.#pieceCharsMax) this.#long = { open, end };
    return end;
  }

  #skipBlanks(): number {
    while (isBlank(this.#text.charCodeAt(this.#at))) this.#at += 1;
    return this.#at;
  }

  #count(values: number): void {
    this.#values += values;
    if (this.#values > this.#rules.valuesMax) throw this.#rules.refusal(`more than ${this.#rules.valuesMax} values`);
  }

  async #turn(): Promise<void> {
    await nextTurn();
    this.#turnEndsMs = performance.now() + turnMs;
  }

  #cut(): Error {
    return this.#rules.refusal('unexpected end of input');
  }

  #tooManyMembers(most: number): Error {
    return this.#rules.refusal(`more than ${most} members in an object`);
  }
}

/** Stands for a null that was read, beside the absence of a small value. */
const absent = Symbol('null');
