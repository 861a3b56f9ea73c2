import { DamagedRecord } from '../values/errors.ts';

/** Parses a stored JSON object. @throws DamagedRecord for anything else */
export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString());
    if (typeof value === 'object' && value !== null) return { ...value };
  } catch {
    // The parser's message could quote the record, so it is dropped.
  }
  throw new DamagedRecord('a record is not a JSON object');
}
