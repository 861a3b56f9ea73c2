import { RequestError } from '../reply/request-error.ts';
import type { JsonValue } from './json.ts';

/** No operation takes longer lists. To split a string of 32 MiB that consists of commas would block the event loop for a second. */
export const textsMax = 10_000;

/**
 * Converts a list of strings, or one comma-separated string. Returns undefined if the field was absent, and an empty list for an empty
 * string.
 * @throws RequestError `invalid_field`
 */
export function textList(name: string, value: JsonValue | undefined): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (value === '') return [];
  const texts = typeof value === 'string' ? value.split(',', textsMax + 1) : value;
  if (!Array.isArray(texts)) throw noList(name, 'expected a list of strings');
  if (texts.length > textsMax) throw noList(name, `more than ${textsMax} strings`);
  if (typeof value === 'string') return texts.map((text) => text.trim());
  if (texts.every((text) => typeof text === 'string')) return texts;
  throw noList(name, 'expected a list of strings');
}

const noList = (name: string, reason: string): RequestError =>
  new RequestError('invalid_field', `Field validation failed: error converting input for field "${name}": ${reason}`);

/** Converts an object with string values; returns an empty object if the field was absent. @throws RequestError `invalid_field` */
export function textsByName(field: string, value: JsonValue | undefined): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  const texts = Object.entries(typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { '': value });
  return Object.fromEntries(
    texts.map(([name, text]) => {
      if (name === '' || (typeof text !== 'string' && typeof text !== 'number' && typeof text !== 'boolean'))
        throw new RequestError(
          'invalid_field',
          `Field validation failed: error converting input for field "${field}": expected an object with string values`,
        );
      return [name, String(text)];
    }),
  );
}
