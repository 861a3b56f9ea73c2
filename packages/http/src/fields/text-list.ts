import { RequestError } from '../reply/request-error.ts';
import type { JsonValue } from './json.ts';

/** No operation takes longer lists. To split a string of 32 MiB that consists of commas would block the event loop for a second. */
export const textsMax = 10_000;

/**
 * Longest text that is not data, in characters. A name, a setting or a token is shorter. An operation may compare, split or replace such a
 * text in ways that would take seconds for a text of 32 MiB.
 */
export const textCharsMax = 64 * 1024;

/** Returns the error of a field whose value cannot be converted. */
export const invalidField = (name: string, reason: string): RequestError =>
  new RequestError('invalid_field', `Field validation failed: error converting input for field "${name}": ${reason}`);

/** @throws RequestError `invalid_field` */
export function checkTextLength(name: string, text: string): void {
  if (text.length > textCharsMax) throw invalidField(name, `more than ${textCharsMax} characters`);
}

/**
 * Converts a list of strings, or one comma-separated string. Returns undefined if the field was absent, and an empty list for an empty
 * string.
 * @throws RequestError `invalid_field`
 */
export function textList(name: string, value: JsonValue | undefined): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (value === '') return [];
  const texts = typeof value === 'string' ? value.split(',', textsMax + 1) : value;
  if (!Array.isArray(texts)) throw invalidField(name, 'expected a list of strings');
  if (texts.length > textsMax) throw invalidField(name, `more than ${textsMax} strings`);
  if (!texts.every((text) => typeof text === 'string')) throw invalidField(name, 'expected a list of strings');
  for (const text of texts) checkTextLength(name, text);
  return typeof value === 'string' ? texts.map((text) => text.trim()) : texts;
}

/** Returns whether a field for an object is absent or empty. PHP and Lua write an empty object as `[]`, and the peers accept this. */
export const hasNoMembers = (value: JsonValue | undefined): value is null | undefined | readonly [] =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);

/** Converts an object with string values; returns an empty object if the field was absent or `[]`. @throws RequestError `invalid_field` */
export function textsByName(field: string, value: JsonValue | undefined): Readonly<Record<string, string>> {
  if (hasNoMembers(value)) return {};
  const texts = Object.entries(typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { '': value });
  return Object.fromEntries(
    texts.map(([name, text]) => {
      if (name === '' || (typeof text !== 'string' && typeof text !== 'number' && typeof text !== 'boolean'))
        throw invalidField(field, 'expected an object with string values');
      const value = String(text);
      checkTextLength(field, name);
      checkTextLength(field, value);
      return [name, value];
    }),
  );
}
