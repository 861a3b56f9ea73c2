import { CodecError } from '@transitd/raft-core';

/** The members of a JSON object, of which nothing is checked yet. */
export type JsonFields = Readonly<Record<string, unknown>>;

/** Whether a JSON value has members: it is an object or an array. */
export const hasFields = (value: unknown): value is JsonFields => typeof value === 'object' && value !== null;

/** Whether a JSON value is a count: a whole number from 0. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Returns the JSON value of UTF-8 text; undefined if the text is not JSON. Errors of JSON.parse could repeat a secret. */
export function jsonIn(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return undefined;
  }
}

/** Returns the members of the JSON value in UTF-8 text; an empty object if the text is anything else. */
export function fieldsIn(bytes: Uint8Array): JsonFields {
  const value = jsonIn(bytes);
  return hasFields(value) ? value : {};
}

/**
 * Decodes the UTF-8 text of a JSON value that has members.
 * @param what - names the bytes in the error, such as `the spaces record`
 * @throws CodecError for all other bytes
 */
export function decodeFields(bytes: Uint8Array, what: string): JsonFields {
  const value = jsonIn(bytes);
  if (hasFields(value)) return value;
  throw new CodecError(`${what} is not a JSON object`);
}
