import { AccessError } from './errors.ts';
import type { Principal } from './principal.ts';

/** What is stored of a token. */
export interface TokenRecord {
  readonly accessor: string;
  readonly policies: readonly string[];
  readonly displayName: string;
  /** Milliseconds since the epoch. */
  readonly createdMs: number;
}

const format = 1;

/** JSON with a format number. */
export const encodeToken = (record: TokenRecord): Buffer => Buffer.from(JSON.stringify({ format, ...record }));

/** @throws AccessError `record_unreadable` */
export function decodeToken(stored: Uint8Array): Principal {
  const { format: version, accessor, policies, displayName } = parse(stored);
  if (version !== format || typeof accessor !== 'string' || typeof displayName !== 'string' || !isStrings(policies))
    throw unreadable();
  return Object.freeze({ accessor, policies: Object.freeze([...policies]), displayName, root: policies.includes('root') });
}

/** `format u8 | key`: bytes and not JSON, so that it can be wiped. */
export const encodeTokenKey = (key: Uint8Array): Buffer => Buffer.concat([Buffer.of(format), key]);

/** Shares memory with `stored`. @throws AccessError `record_unreadable` */
export function decodeTokenKey(stored: Uint8Array): Uint8Array {
  if (stored[0] !== format || stored.length !== 1 + tokenKeyBytes) throw unreadable();
  return stored.subarray(1);
}

export const tokenKeyBytes = 32;

function parse(stored: Uint8Array): Record<string, unknown> {
  try {
    const record: unknown = JSON.parse(Buffer.from(stored).toString('utf8'));
    if (typeof record === 'object' && record !== null) return { ...record };
  } catch (error) {
    throw unreadable({ cause: error });
  }
  throw unreadable();
}

const isStrings = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

const unreadable = (options?: ErrorOptions): AccessError =>
  new AccessError('record_unreadable', 'a record of access is not of a format that this version knows', options);
