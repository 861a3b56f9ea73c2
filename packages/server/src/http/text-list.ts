import { RequestError } from './error-answer.ts';
import type { JsonValue } from './json.ts';

/**
 * A field that holds texts: a list of them, or one text with commas. Undefined when it was absent.
 * @throws RequestError `invalid_field`
 */
export function textList(name: string, value: JsonValue | undefined): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value.split(',').map((text) => text.trim());
  if (Array.isArray(value) && value.every((text) => typeof text === 'string')) return value;
  throw new RequestError(
    'invalid_field',
    `Field validation failed: error converting input for field "${name}": expected a list of strings`,
  );
}
