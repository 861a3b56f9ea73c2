import { recordUnreadable } from './errors.ts';

const format = 1;

/** Encodes a record as JSON with a format number. */
export const encodeJson = (record: object): Buffer => Buffer.from(JSON.stringify({ format, ...record }));

/**
 * Decodes a record and checks that it has the shape of `example`: the same members, each of the same type. Items of lists, and
 * members of objects that are empty in `example`, are not checked.
 * @throws AccessError `record_unreadable`
 */
export function decodeJson<T extends object>(stored: Uint8Array, example: T): T {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(stored).toString('utf8'));
  } catch (error) {
    throw recordUnreadable({ cause: error });
  }
  const { format: version, ...record } = Object(parsed) as Record<string, unknown>;
  if (version !== format || !isLike(record, example)) throw recordUnreadable();
  return record as T; // isLike checked it
}

function isLike(value: unknown, example: unknown): boolean {
  if (Array.isArray(example)) return Array.isArray(value);
  if (typeof example !== 'object' || example === null) return typeof value === typeof example;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.entries(example).every(([name, member]) => isLike(Reflect.get(value, name), member));
}
