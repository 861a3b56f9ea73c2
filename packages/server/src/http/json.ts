import { isAscii, isUtf8 } from 'node:buffer';
import { batchItemsMax } from '@transitd/transit-engine';
import { RequestError } from './error-answer.ts';
import type { Query } from './path.ts';

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [member: string]: JsonValue };

/** The members of a request body, own properties of an object without a prototype: `constructor` is there only if it was sent. */
export type Body = { readonly [member: string]: JsonValue };

/** Arrays and objects within each other, the body itself included. */
export const jsonDepthMax = 64;
/** Values in all: what the longest batch needs when each of its items has eight members, which is more than any kind of item has. */
export const jsonValuesMax = 10 * batchItemsMax;
/** Members of the body itself, and of an object within it: wide objects with ever new names cost the parser ten times as much. */
export const jsonMembersMax = { body: 1_000, nested: 64 } as const;

/**
 * Reads a body as JSON whatever its content type says; as a form when the type says so and the text does not begin like JSON.
 * Empty and `null` are `{}`; of a member sent twice the last counts. Nested objects keep their members as own properties too.
 * Messages tell where the text broke, never what it held: a body may hold secrets.
 * @throws RequestError `malformed_body`
 */
export function parseBody(bytes: Buffer, contentType: string | undefined): Body {
  if (bytes.length === 0) return bare({});
  const text = decode(bytes);
  if (contentType !== undefined && isForm(contentType) && !/^[ \t\r\n]*(?:[[{]|null[ \t\r\n]*$|$)/.test(text))
    return parseForm(text);
  return parseJson(text);
}

/** A body's members as the query of a GET gives them: first value each, without the two that are about the request itself. */
export function queryBody(query: Query): Body {
  const members: Record<string, JsonValue> = bare({});
  if (query.size === 0) return members;
  for (const [name, value] of query.entries())
    if (name !== 'list' && name !== 'help' && !(name in members)) members[name] = value;
  return members;
}

function parseJson(text: string): Body {
  if (isBlank(text)) return bare({});
  checkShape(text);
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw malformed(complaint(error as SyntaxError, text.length));
  }
  if (value === null) return bare({});
  if (typeof value !== 'object' || Array.isArray(value))
    throw malformed(`json: cannot unmarshal ${kindOf(value)} into an object`);
  if (/\\u[dD][89a-fA-F]/.test(text)) checkWellFormed(value);
  return bare(value as Body);
}

/** Takes the prototype away; members named `__proto__` are own properties by then and stay. */
const bare = <T extends object>(members: T): T => Object.setPrototypeOf(members, null);

const isBlank = (text: string): boolean => /^[ \t\r\n]*$/.test(text);

function decode(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1');
  if (!isUtf8(bytes)) throw malformed('the text is not UTF-8');
  return bytes.toString('utf8');
}

/** Members so far of the objects around the place that the pass is at, by depth. Arrays begin so low that they never have too many. */
const membersAt = new Int32Array(jsonDepthMax + 1);
const arrayBegin = -2 * jsonValuesMax;

/**
 * One pass over the text before it is parsed: a text that is too deep or has too many values costs this loop and nothing else, where
 * parsing it would hold up everybody. Strings are skipped by searching for their end, so large ones cost next to nothing. Up to the
 * first syntax error it counts as the parser does, one value for each comma and each bracket; after it nothing matters.
 */
function checkShape(text: string): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      at = endOfString(text, at);
      if (at < 0) return;
    } else if (code === 0x2c) {
      values += 1;
      if (values > jsonValuesMax) throw tooManyValues();
      const members = (membersAt[depth] ?? 0) + 1;
      membersAt[depth] = members;
      const most = depth === 1 ? jsonMembersMax.body : jsonMembersMax.nested;
      if (members > most) throw malformed(`more than ${most} members in an object`);
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      values += 1;
      if (values > jsonValuesMax) throw tooManyValues();
      if (depth > jsonDepthMax) throw malformed(`more than ${jsonDepthMax} levels of nesting`);
      membersAt[depth] = code === 0x7b ? 1 : arrayBegin;
    } else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
}

/** Index of the quote that closes the string opened at `open`, or -1. Each backslash is looked at once. */
function endOfString(text: string, open: number): number {
  for (let from = open + 1; ; ) {
    const quote = text.indexOf('"', from);
    if (quote < 0) return -1;
    let before = quote - 1;
    while (before >= from && text.charCodeAt(before) === 0x5c) before -= 1;
    if ((quote - before) % 2 === 1) return quote;
    from = quote + 1;
  }
}

/** Half a surrogate pair has no UTF-8 form: policy, audit and store would each see another text. */
function checkWellFormed(value: JsonValue): void {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw malformed('a string has half of a surrogate pair');
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

/** The parser's own message quotes the body, so only its position is taken over. */
function complaint({ message }: SyntaxError, length: number): string {
  const position = / in JSON at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message)?.[1];
  if (message === 'Unexpected end of JSON input' || Number(position) >= length) return 'unexpected end of input';
  return position === undefined ? 'invalid syntax' : `invalid syntax at position ${position}`;
}

const tooManyValues = (): RequestError => malformed(`more than ${jsonValuesMax} values`);

const isForm = (contentType: string): boolean => /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType);

function parseForm(text: string): Body {
  let fields = 1;
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) {
    fields += 1;
    if (fields > jsonMembersMax.body) throw badForm(`more than ${jsonMembersMax.body} fields`);
  }
  try {
    if (text.includes('%')) decodeURIComponent(text);
  } catch {
    throw badForm('a percent-encoding is broken or not UTF-8');
  }
  const members: Record<string, JsonValue> = bare({});
  for (const [name, value] of new URLSearchParams(text)) members[name] = value;
  return members;
}

const malformed = (reason: string): RequestError => new RequestError('malformed_body', `failed to decode JSON input: ${reason}`);
const badForm = (reason: string): RequestError => new RequestError('malformed_body', `failed to decode form input: ${reason}`);
