import { isAscii, isUtf8 } from 'node:buffer';
import {
  endOfJsonString,
  type JsonRules,
  nextTurn,
  parseJsonInSlices,
  pieceValuesMax,
  plainCharsMax,
  tooManyPlain,
} from '@transitd/event-loop';
import type { Query } from '../path.ts';
import { RequestError } from '../reply/request-error.ts';
import { withoutLongTexts } from './long-texts.ts';

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [member: string]: JsonValue };

/** Members of a request body, in an object without a prototype: `constructor` is present only if it was sent. */
export type Body = { readonly [member: string]: JsonValue };

/** Maximum nesting depth, including the body itself. */
export const jsonDepthMax = 64;
/** Maximum number of values: enough for the longest batch with eight members per item. All items have fewer members. */
export const jsonValuesMax = 1_000_000;
/** Maximum number of members of one object: objects with many different names are ten times as expensive to parse. */
export const jsonMembersMax = { body: 1_000, nested: 64 } as const;

/**
 * Parses a body as JSON, whatever its content type. A body is parsed as a form only if its content type is that of a form and the body does
 * not begin like JSON. An empty body and `null` become `{}`; the last of duplicate members counts. Nested objects have no prototype either.
 * A body with many values is parsed in several steps, so that other requests can run in between, and is returned as a promise. Messages
 * contain the position of an error but no content: a body may hold secrets.
 * @param longTextBytes - longer texts take another way to the same value
 * @throws RequestError `malformed_body`
 */
export function parseBody(
  bytes: Buffer,
  contentType: string | undefined,
  longTextBytes = longTextBytesDefault,
): Body | Promise<Body> {
  if (bytes.length === 0) return bare({});
  const members = parsedAroundLongTexts(bytes, longTextBytes);
  if (members !== undefined) return members;
  const text = decode(bytes);
  if (contentType !== undefined && isForm(contentType) && !beginsLikeJson(text)) return parseForm(bytes);
  return parseJson(text);
}

/** Returns the parameters of a query, with the first value of each. Omits `list` and `help`, which concern the request itself. */
export function queryBody(query: Query): Body {
  const members: Record<string, JsonValue> = bare({});
  if (query.size === 0) return members;
  for (const [name, value] of query.entries())
    if (name !== 'list' && name !== 'help' && !(name in members)) members[name] = value;
  return members;
}

function parseJson(text: string): Body | Promise<Body> {
  if (mustBeSplit(text)) return parsedInSlices(text);
  if (isBlank(text)) return bare({});
  let value: JsonValue;
  try {
    value = parsePiece(text);
  } catch (error) {
    throw error instanceof SyntaxError ? malformed(complaint(error, text.length)) : error;
  }
  return membersOf(value);
}

/** Shorter texts cost little. */
const longTextBytesDefault = 64 * 1024;

/** Returns the members of a JSON object with long texts and few values; undefined for any other body, and for one to refuse. */
function parsedAroundLongTexts(bytes: Buffer, longTextBytes: number): Body | undefined {
  const body = withoutLongTexts(bytes, longTextBytes);
  if (body === undefined) return undefined;
  try {
    const textOf = mustBeSplit(body.rest) ? undefined : body.texts();
    if (textOf === undefined) return undefined;
    const value: JsonValue = JSON.parse(body.rest, (name, value) => {
      if (textOf(name) !== undefined) throw new SyntaxError('a name is long');
      return typeof value === 'string' ? (textOf(value) ?? value) : value;
    });
    return membersOf(value);
  } catch {
    return undefined; // parsed again as a whole, which finds the reason and its position
  }
}

/** Longer texts take milliseconds to decode: parsing them begins in the next turn of the event loop. */
const parsedAtOnceCharsMax = 1024 * 1024;

async function parsedInSlices(text: string): Promise<Body> {
  if (text.length > parsedAtOnceCharsMax) await nextTurn();
  return membersOf((await parseJsonInSlices(text, rules)) as JsonValue);
}

function membersOf(value: JsonValue): Body {
  if (value === null) return bare({});
  if (typeof value !== 'object' || Array.isArray(value))
    throw malformed(`json: cannot unmarshal ${kindOf(value)} into an object`);
  return bare(value as Body);
}

function parsePiece(text: string): JsonValue {
  const value: JsonValue = JSON.parse(text);
  if (text.includes('\\u') && /\\u[dD][89a-fA-F]/.test(text)) checkWellFormed(value); // the expression alone takes a nanosecond per byte
  return value;
}

/** Removes the prototype; by then, members named `__proto__` are own properties and stay. */
const bare = <T extends object>(members: T): T => Object.setPrototypeOf(members, null);

/** Looks at no more than what is refused as JSON: the expression takes a nanosecond per blank. */
const beginsLikeJson = (text: string): boolean => /^[ \t\r\n]*(?:[[{]|null[ \t\r\n]*$|$)/.test(text.slice(0, 2 * plainCharsMax));

const isBlank = (text: string): boolean => /^[ \t\r\n]*$/.test(text);

function decode(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1');
  if (!isUtf8(bytes)) throw malformed('the text is not UTF-8');
  return bytes.toString('utf8');
}

/** Characters outside of strings that are scanned and parsed in one turn of the event loop. */
const scannedMax = 512 * 1024;
/** Number of members so far in each enclosing object, by depth. The count of an array starts so low that it never exceeds the limit. */
const membersAt = new Int32Array(jsonDepthMax + 1);
const arrayBegin = -2 * jsonValuesMax;
const membersMaxAt = (depth: number): number => (depth === 1 ? jsonMembersMax.body : jsonMembersMax.nested);

/**
 * Scans the text before it is parsed. Returns whether it has so many values or blanks that parsing it in one step would delay other
 * requests, or names with escapes, of which `JSON.parse` may not keep the last one (see `parseJsonInSlices`). Refuses text that is nested
 * too deeply, has an object with too many members, or more blanks in a row than any client sends. The scan skips a string by searching for
 * its end, so long strings are cheap. Up to the first syntax error the scan counts as the parser does; after the error the count does not
 * matter.
 */
function mustBeSplit(text: string): boolean {
  // Where the last string begins, which a colon makes a name; -1 in a text without escapes. If the loop itself asked whether the text has
  // escapes, V8 would search the whole text for one at each colon.
  let name = text.includes('\\') ? 0 : -1;
  let depth = 0;
  let values = 0;
  let scanned = 0;
  let mark = 0; // the last character that is not plain
  membersAt[0] = arrayBegin; // commas outside of the body are a syntax error, however many there are
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    scanned += 1;
    if (code === 0x22) {
      if (name >= 0) name = at;
      at = endOfJsonString(text, at);
      if (at < 0) return false;
    } else if (code === 0x3a) {
      if (name >= 0) {
        if (text.slice(name, at).includes('\\')) return true;
        name = at; // no string is searched twice
      }
    } else if (code === 0x2c) {
      values += 1;
      if (values > pieceValuesMax) return true;
      const members = (membersAt[depth] ?? 0) + 1;
      membersAt[depth] = members;
      if (members > membersMaxAt(depth)) throw malformed(`more than ${membersMaxAt(depth)} members in an object`);
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      values += 1;
      if (values > pieceValuesMax) return true;
      if (depth > jsonDepthMax) throw malformed(`more than ${jsonDepthMax} levels of nesting`);
      membersAt[depth] = code === 0x7b ? 1 : arrayBegin;
    } else if (code === 0x7d || code === 0x5d) depth -= 1;
    else {
      if (at - mark > plainCharsMax) throw malformed(tooManyPlain);
      continue;
    }
    mark = at;
    if (scanned > scannedMax) return true;
  }
  return false;
}

/** Refuses lone surrogates. They have no UTF-8 form, so policies, audit and storage would each see a different string. */
function checkWellFormed(value: JsonValue): void {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw malformed('a string contains a lone surrogate');
  } else if (Array.isArray(value)) {
    for (const item of value) checkWellFormed(item);
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      checkWellFormed(name);
      checkWellFormed(member);
    }
  }
}

const kindOf = (value: JsonValue): string =>
  Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;

/** Returns the reason for a syntax error. The parser's message quotes the body, so only the position is taken from it. */
function complaint({ message }: SyntaxError, length: number): string {
  const position = / in JSON at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message)?.[1];
  if (message === 'Unexpected end of JSON input' || Number(position) >= length) return 'unexpected end of input';
  return position === undefined ? 'invalid syntax' : `invalid syntax at position ${position}`;
}

const isForm = (contentType: string): boolean => /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType);

/** Parses a form (WHATWG URL §5.1). `URLSearchParams` would take seconds and gigabytes for millions of plus signs. */
function parseForm(bytes: Buffer): Body {
  const fields = decode(withSpaces(bytes)).split('&', jsonMembersMax.body + 1);
  if (fields.length > jsonMembersMax.body) throw badForm(`more than ${jsonMembersMax.body} fields`);
  const members: Record<string, JsonValue> = bare({});
  for (const field of fields) {
    if (field === '') continue;
    const [name = ''] = field.split('=', 1);
    members[decoded(name)] = decoded(field.slice(name.length + 1));
  }
  return members;
}

const [plus, space] = [0x2b, 0x20];

/** Replaces each plus sign by a space. In a string, each replacement would make a new part of it. */
function withSpaces(bytes: Buffer): Buffer {
  if (!bytes.includes(plus)) return bytes;
  const spaced = Buffer.from(bytes);
  for (let at = 0; at < spaced.length; at += 1) if (spaced[at] === plus) spaced[at] = space;
  return spaced;
}

function decoded(text: string): string {
  try {
    return text.includes('%') ? decodeURIComponent(text) : text;
  } catch {
    throw badForm('a percent-encoding is broken or not UTF-8');
  }
}

const malformed = (reason: string): RequestError => new RequestError('malformed_body', `failed to decode JSON input: ${reason}`);
const badForm = (reason: string): RequestError => new RequestError('malformed_body', `failed to decode form input: ${reason}`);

const rules: JsonRules = {
  depthMax: jsonDepthMax,
  valuesMax: jsonValuesMax,
  membersMax: membersMaxAt,
  parse: parsePiece,
  refusal: malformed,
};
