import { recordUnreadable } from './errors.ts';

const format = 1;

/** A record as JSON with a format number. */
export const encodeJson = (record: object): Buffer => Buffer.from(JSON.stringify({ format, ...record }));

/**
 * Reads a record back that has the shape of `example`: the same members, of the same kinds; what is in lists, and in objects that are
 * empty there, is the writer's business. @throws AccessError `record_unreadable`
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
  return record as T; // it was looked at just now
}

function isLike(value: unknown, example: unknown): boolean {
  if (Array.isArray(example)) return Array.isArray(value);
  if (typeof example !== 'object' || example === null) return typeof value === typeof example;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.entries(example).every(([name, member]) => isLike(Reflect.get(value, name), member));
}
