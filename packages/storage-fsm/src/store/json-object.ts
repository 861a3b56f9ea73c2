import { CodecError } from '@transitd/raft-core';

/** The members of a JSON object, of which nothing is checked yet. */
export type JsonFields = Readonly<Record<string, unknown>>;

/** Whether a JSON value has members: it is an object or an array. */
export const hasFields = (value: unknown): value is JsonFields => typeof value === 'object' && value !== null;

/**
 * Decodes the UTF-8 text of a JSON value that has members.
 * @param what - names the bytes in the error, such as `the spaces record`
 * @throws CodecError for all other bytes
 */
export function decodeFields(bytes: Uint8Array, what: string): JsonFields {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString());
    if (hasFields(value)) return value;
  } catch {
    // The parser's message could quote the bytes, so it is dropped.
  }
  throw new CodecError(`${what} is not a JSON object`);
}
