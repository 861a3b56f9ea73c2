import type { Steps } from './steps.ts';
import { TimeSlice } from './time-slice.ts';

/** Limits on a JSON text. */
export interface JsonLimits {
  /** Maximum depth of nested arrays and objects. */
  readonly depthMax: number;
  /** Maximum number of commas and opening brackets in the whole text. */
  readonly valuesMax: number;
  /** Maximum number of members of one object. The outermost object has depth 1. */
  membersMax(depth: number): number;
  /** Makes the error that the caller of the parser gets. */
  refusal(reason: string): Error;
}

/** Limits on a JSON text, and the parser of its pieces. */
export interface JsonRules extends JsonLimits {
  /** Maximum number of values in one piece, at least 1. An empty container counts as one value. Default: {@link pieceValuesMax}. */
  readonly pieceValuesMax?: number;
  /**
   * Maximum length in characters of a container that is parsed as one piece; a container with a single value may be longer because of its
   * strings. Default: 64 KiB.
   */
  readonly pieceCharsMax?: number;
  /** `JSON.parse`, or a stricter parser. */
  parse(piece: string): unknown;
}

/**
 * Maximum number of characters in a row that are neither part of a string nor a bracket, a comma or a colon: blanks, or a number. So every
 * search for the next one of those ends soon, and a text of megabytes of blanks is refused at its beginning.
 */
export const plainCharsMax = 1024 * 1024;
export const tooManyPlain = `more than ${plainCharsMax} characters in a row outside of strings`;

/** Default maximum of values in one piece: a few milliseconds of work, even if every member has a new name. */
export const pieceValuesMax = 1000;
/** Bounds the repeated scanning of nested containers: at each level of nesting, the container is scanned again, up to this length. */
const pieceCharsMaxDefault = 64 * 1024;
const [quote, comma, openBracket, closeBracket, openBrace, closeBrace, colon] = [0x22, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d, 0x3a];
const backslash = 0x5c;

/**
 * Parses JSON of any size and yields to the event loop on the way. Containers with few values go to `parse` as they are; larger ones
 * are split into their items or members.
 * @throws the error that `refusal` returns for the reason
 */
export const parseJsonInSlices = (text: string, rules: JsonRules): Promise<unknown> => new Reader(text, rules).whole();

/** Characters that one step of {@link checkJsonLimits} scans: a fraction of a millisecond of work. */
const scannedPerStep = 16 * 1024;

/**
 * Checks a whole text against its limits before anything of it is built. For a text inside a request's body, which the limits of the body
 * count as one string. Up to the first syntax error it counts as the parser does; after that the count does not matter.
 * @param containersMax - maximum number of arrays and objects, which take much more memory than other values
 * @param textCharsMax - maximum length of a string or number
 * @throws the error that `refusal` returns for the reason
 */
export function* checkJsonLimits(
  text: string,
  limits: JsonLimits & { readonly containersMax: number; readonly textCharsMax: number },
): Steps<void> {
  const { depthMax, valuesMax, containersMax, textCharsMax, refusal } = limits;
  const members = new Float64Array(depthMax + 2);
  let [depth, values, containers, begin, isString, stepEnd] = [0, 0, 0, 0, false, scannedPerStep];
  for (let at = 0; at < text.length; at += 1) {
    if (at >= stepEnd) {
      yield;
      stepEnd = at + scannedPerStep;
    }
    const code = text.charCodeAt(at);
    if (at - begin > textCharsMax) throw refusal(`a string or number of more than ${textCharsMax} characters`);
    if (isString) {
      if (code === backslash) at += 1;
      else if (code === quote) isString = false;
      continue;
    }
    if (code === quote) isString = true;
    else if (code === comma) {
      values += 1;
      const count = (members[depth] ?? 0) + 1;
      members[depth] = count;
      if (count > limits.membersMax(depth)) throw refusal(`more than ${limits.membersMax(depth)} members in an object`);
    } else if (code === openBrace || code === openBracket) {
      values += 1;
      containers += 1;
      depth += 1;
      if (containers > containersMax) throw refusal(`more than ${containersMax} arrays and objects`);
      if (depth > depthMax) throw refusal(`more than ${depthMax} levels of nesting`);
      members[depth] = code === openBrace ? 1 : Number.NEGATIVE_INFINITY;
    } else if (code === closeBrace || code === closeBracket) depth = Math.max(0, depth - 1);
    else if (code !== colon) continue;
    begin = at;
    if (values > valuesMax) throw refusal(`more than ${valuesMax} values`);
  }
}

/** Returns the index of the quote that closes the string opened at `open`, or -1. Takes linear time even for many backslashes. */
export function endOfJsonString(text: string, open: number): number {
  const end = text.indexOf('"', open + 1);
  let before = end - 1;
  while (before > open && text.charCodeAt(before) === backslash) before -= 1;
  if (end < 0 || (end - before) % 2 === 1) return end;
  // A string with one quote in it may have millions, and a search for each of them would take ten times as long.
  for (let at = end + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at += 1;
  }
  return -1;
}

const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** Where a piece must end at the latest: the place in the text, and the number of values before it. */
interface PieceEnd {
  readonly end: number;
  readonly values: number;
}

class Reader {
  readonly #text: string;
  readonly #rules: JsonRules;
  /** By depth: the number of members so far of the object around the scan position; -Infinity for an array, whose items are not counted. */
  readonly #members: Float64Array;
  readonly #pieceValuesMax: number;
  readonly #pieceCharsMax: number;
  /** Position of the last string longer than a piece. It is remembered because every container around the string would scan it again. */
  #longString = { open: -1, end: -1 };
  #at = 0;
  #values = 0;
  readonly #slice = new TimeSlice();
  /**
   * `JSON.parse` of V8 13.6 may keep the first of several members of one name, if the name is written with escapes. Objects with such names
   * are split, so that the last one counts.
   */
  readonly #hasEscapes: boolean;

  constructor(text: string, rules: JsonRules) {
    this.#text = text;
    this.#hasEscapes = text.includes('\\');
    this.#rules = rules;
    this.#pieceValuesMax = rules.pieceValuesMax ?? pieceValuesMax;
    this.#pieceCharsMax = rules.pieceCharsMax ?? pieceCharsMaxDefault;
    this.#members = new Float64Array(rules.depthMax + 2);
  }

  async whole(): Promise<unknown> {
    this.#skipBlanks();
    const value = this.#small(1) ?? (await this.#large(1));
    if (this.#skipBlanks() < this.#text.length) throw this.#rules.refusal('invalid syntax');
    return value === nullValue ? null : value;
  }

  /** Parses the value here if it is small; returns `nullValue` for null, and undefined when the value must be split. */
  #small(depth: number): unknown {
    const end = this.#endOfSmall(depth);
    if (end === undefined) return undefined;
    const piece = this.#text.slice(this.#at, end);
    this.#at = end;
    return this.#parse(piece) ?? nullValue;
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
      if (this.#slice.isOver) await this.#slice.next();
      this.#skipBlanks();
      const most = { end: this.#at + this.#pieceCharsMax, values: this.#values + this.#pieceValuesMax };
      const end = this.#endOfSmall(depth + 1);
      if (end === undefined) items.push(await this.#large(depth + 1));
      else for (const item of this.#smallItems(end, depth + 1, most)) items.push(item);
    } while (this.#hasNext(closeBracket));
    return items;
  }

  /**
   * Parses the small item here, and with it as many of the next ones as fit into one piece: to parse them one by one takes twice the time.
   * @param end - that of the first item
   * @param most - that of the piece
   */
  #smallItems(end: number, depth: number, most: PieceEnd): readonly unknown[] {
    const begin = this.#at;
    for (let next: number | undefined = end; next !== undefined; next = this.#endOfNextItem(depth, most)) this.#at = next;
    const items = this.#parse(`[${this.#text.slice(begin, this.#at)}]`) as readonly unknown[];
    if (items.length === 0) throw this.#rules.refusal('invalid syntax'); // nothing after a comma
    return items;
  }

  /** Returns the end of the item after this one, if there is one that is small and fits into the same piece. */
  #endOfNextItem(depth: number, most: PieceEnd): number | undefined {
    const [at, values] = [this.#at, this.#values];
    try {
      if (this.#text.charCodeAt(this.#skipBlanks()) === comma) {
        this.#at += 1;
        this.#count(1);
        this.#skipBlanks();
        const end = this.#endOfSmall(depth);
        if (end !== undefined && end <= most.end && this.#values <= most.values) return end;
      }
    } catch {
      // The item is scanned again once those before it are parsed: their errors come first.
    }
    [this.#at, this.#values] = [at, values];
    return undefined;
  }

  async #object(depth: number): Promise<object> {
    const object: Record<string, unknown> = {};
    const membersMax = this.#rules.membersMax(depth);
    let members = 0;
    do {
      this.#at += 1;
      if (this.#slice.isOver) await this.#slice.next();
      members += 1;
      if (members > membersMax) throw this.#tooManyMembers(membersMax);
      const name = this.#name();
      const value = this.#small(depth + 1) ?? (await this.#large(depth + 1));
      Object.defineProperty(object, name, {
        value: value === nullValue ? null : value,
        configurable: true,
        enumerable: true,
        writable: true,
      });
    } while (this.#hasNext(closeBrace));
    return object;
  }

  /** Reads a member's name and the colon after it. */
  #name(): string {
    const { length } = this.#text;
    const open = this.#skipBlanks();
    if (open < length && this.#text.charCodeAt(open) !== quote) throw this.#rules.refusal('invalid syntax');
    const end = open < length ? endOfJsonString(this.#text, open) : -1;
    if (end < 0) throw this.#truncated();
    const name = this.#parse(this.#text.slice(open, end + 1));
    this.#at = end + 1;
    if (this.#skipBlanks() >= length) throw this.#truncated();
    if (this.#text.charCodeAt(this.#at) !== colon) throw this.#rules.refusal('invalid syntax');
    this.#at += 1;
    this.#skipBlanks();
    return String(name);
  }

  /** Returns true at a comma, and false after the closing bracket. */
  #hasNext(close: number): boolean {
    if (this.#skipBlanks() >= this.#text.length) throw this.#truncated();
    const code = this.#text.charCodeAt(this.#at);
    if (code === comma) this.#count(1);
    else if (code === close) this.#at += 1;
    else throw this.#rules.refusal('invalid syntax');
    return code === comma;
  }

  /** Returns the end of the value here if it is small. The value may still be invalid; `parse` decides that. */
  #endOfSmall(outer: number): number | undefined {
    const text = this.#text;
    const first = text.charCodeAt(this.#at);
    if (this.#at >= text.length) throw this.#truncated();
    if (first === quote) return this.#endOfString(this.#at) + 1;
    if (first !== openBracket && first !== openBrace) return this.#endOfWord();
    let depth = outer - 1;
    let values = 0;
    let name = 0; // where the last string begins, which a colon makes a name
    let mark = this.#at; // the last character that is not plain
    let scanned = 0; // a string counts as one: many without a comma between them would be scanned to the end
    for (let at = this.#at; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      scanned += 1;
      if (code === quote) {
        name = at;
        at = this.#endOfString(at);
      } else if (code === colon) {
        if (this.#hasEscapes && text.slice(name, at).includes('\\')) return undefined;
        name = at; // no string is searched twice
      } else if (code === comma) {
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
      } else {
        if (at - mark > plainCharsMax) throw this.#rules.refusal(tooManyPlain);
        continue;
      }
      mark = at;
      const isLong = (values > 1 && at - this.#at > this.#pieceCharsMax) || scanned > this.#pieceCharsMax;
      if (values > this.#pieceValuesMax || isLong) return undefined;
    }
    throw this.#truncated();
  }

  /** Returns the end of a number or a literal. */
  #endOfWord(): number {
    let at = this.#at;
    for (; at < this.#text.length; at += 1) {
      const code = this.#text.charCodeAt(at);
      if (code === comma || code === closeBracket || code === closeBrace || isBlank(code)) break;
      if (at - this.#at > plainCharsMax) throw this.#rules.refusal(tooManyPlain);
    }
    return at;
  }

  #endOfString(open: number): number {
    if (open === this.#longString.open) return this.#longString.end;
    const end = endOfJsonString(this.#text, open);
    if (end < 0) throw this.#truncated();
    if (end - open > this.#pieceCharsMax) this.#longString = { open, end };
    return end;
  }

  #skipBlanks(): number {
    const begin = this.#at;
    for (; isBlank(this.#text.charCodeAt(this.#at)); this.#at += 1)
      if (this.#at - begin > plainCharsMax) throw this.#rules.refusal(tooManyPlain);
    return this.#at;
  }

  #count(values: number): void {
    this.#values += values;
    if (this.#values > this.#rules.valuesMax) throw this.#rules.refusal(`more than ${this.#rules.valuesMax} values`);
  }

  #truncated(): Error {
    return this.#rules.refusal('unexpected end of input');
  }

  #tooManyMembers(max: number): Error {
    return this.#rules.refusal(`more than ${max} members in an object`);
  }
}

/** Represents a JSON null, because undefined means that the value must be split. */
const nullValue = Symbol('null');
