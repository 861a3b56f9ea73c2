import { recordUnreadable } from './errors.ts';

/** What is stored of a token. Times are milliseconds since the epoch, durations seconds. */
export interface TokenRecord {
  /** Names the token without being it; a secret too, but no credential. */
  readonly accessor: string;
  /** Sorted, without doubles. */
  readonly policies: readonly string[];
  readonly displayName: string;
  readonly meta: Readonly<Record<string, string>>;
  /** Where it was made: `auth/token/create`. */
  readonly path: string;
  readonly createdMs: number;
  /** From its creation; 0 when it does not expire. */
  readonly ttlS: number;
  /** 0 when it does not expire. */
  readonly expiresMs: number;
  /** 0 when none was asked for. */
  readonly explicitMaxTtlS: number;
  /** What a renewal gives back, for ever; 0 when it is not periodic. */
  readonly periodS: number;
  readonly renewable: boolean;
  /** Id of the token that made it and with which it goes; empty for an orphan. */
  readonly parent: string;
  /** Keyed hash of the accessor of that very token, not of another that was made later with the same id; empty for an orphan. */
  readonly parentAccessorId: string;
  /** Tokens above it, up to the orphan. */
  readonly generation: number;
  /** Requests that it is still good for; 0 for any number, negative once the last one was made. */
  readonly usesLeft: number;
  /** 0 while it was not renewed. */
  readonly renewedMs: number;
}

const format = 1;

/** JSON with a format number. */
export const encodeTokenRecord = (record: TokenRecord): Buffer => Buffer.from(JSON.stringify({ format, ...record }));

const scalars = {
  accessor: 'string',
  displayName: 'string',
  path: 'string',
  createdMs: 'number',
  ttlS: 'number',
  expiresMs: 'number',
  explicitMaxTtlS: 'number',
  periodS: 'number',
  renewable: 'boolean',
  parent: 'string',
  parentAccessorId: 'string',
  generation: 'number',
  usesLeft: 'number',
  renewedMs: 'number',
} as const satisfies Partial<Record<keyof TokenRecord, string>>;

/** @throws AccessError `record_unreadable` */
export function decodeTokenRecord(stored: Uint8Array): TokenRecord {
  const { format: version, ...record } = parseObject(stored);
  const whole =
    version === format &&
    Object.entries(scalars).every(([name, type]) => typeof record[name] === type) &&
    Array.isArray(record['policies']) &&
    isTexts(record['policies']) &&
    isObject(record['meta']) &&
    isTexts(Object.values(record['meta']));
  if (!whole) throw recordUnreadable();
  // Every member was looked at just now; who shares it cannot change it.
  return Object.freeze(record) as unknown as TokenRecord;
}

/** What an accessor leads to. */
export interface AccessorRecord {
  readonly accessor: string;
  /** Id of the token. */
  readonly token: string;
}

export const encodeAccessorRecord = (record: AccessorRecord): Buffer => Buffer.from(JSON.stringify({ format, ...record }));

/** @throws AccessError `record_unreadable` */
export function decodeAccessorRecord(stored: Uint8Array): AccessorRecord {
  const { format: version, accessor, token } = parseObject(stored);
  if (version !== format || typeof accessor !== 'string' || typeof token !== 'string') throw recordUnreadable();
  return { accessor, token };
}

/** The value of a record of which only the path matters. */
export const placeMark = Buffer.of(format);

function parseObject(stored: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(stored).toString('utf8'));
    if (isObject(value)) return { ...value };
  } catch (error) {
    throw recordUnreadable({ cause: error });
  }
  throw recordUnreadable();
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isTexts = (values: readonly unknown[]): boolean => values.every((value) => typeof value === 'string');
