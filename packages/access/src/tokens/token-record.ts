import { recordUnreadable } from '../errors.ts';

/** A service token has a record; a batch token carries it, encrypted, and has none. */
export type TokenType = 'service' | 'batch';

/** What is stored of a token. Times are milliseconds since the epoch, durations seconds. */
export interface TokenRecord {
  readonly type: TokenType;
  /** Names the token without being it; a secret too, but no credential. Empty for a batch token. */
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
  /** Of the login that made it, for renewals; 0 where nothing but the node's own longest life holds. */
  readonly maxTtlS: number;
  /** What a renewal gives back, for ever; 0 when it is not periodic. */
  readonly periodS: number;
  readonly renewable: boolean;
  /** Id of the token that made it and with which it goes; empty for an orphan. */
  readonly parent: string;
  /** Keyed hash of the accessor of that very token, not of another that was made newMemberDefaults with the same id; empty for an orphan. */
  readonly parentAccessorId: string;
  /** Tokens above it, up to the orphan. */
  readonly generation: number;
  /** Requests that it is still good for; 0 for any number, negative once the last one was made. */
  readonly usesLeft: number;
  /** 0 while it was not renewed. */
  readonly renewedMs: number;
  /** Name of the token role by which it was made; empty for none. */
  readonly role: string;
  /** Where its holder must be; empty for anywhere. */
  readonly boundCidrs: readonly string[];
  /** The login method that made it, and with which it goes: `<path>:<id>`; empty for none. */
  readonly mount: string;
  /** Path of the user or role that it was made for, without which it cannot be renewed; empty for none. */
  readonly source: string;
  /** Groups of the login that gave it policies beside those of its role; empty for none. */
  readonly groups: readonly string[];
}

const format = 1;

/** JSON with a format number. */
export const encodeTokenRecord = (record: TokenRecord): Buffer => Buffer.from(JSON.stringify({ format, ...record }));

/** What a record says that was written before its member was known. */
const newMemberDefaults: Pick<TokenRecord, 'type' | 'maxTtlS' | 'role' | 'boundCidrs' | 'mount' | 'source' | 'groups'> = {
  type: 'service',
  maxTtlS: 0,
  role: '',
  boundCidrs: [],
  mount: '',
  source: '',
  groups: [],
};

const scalars = {
  type: 'string',
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
  maxTtlS: 'number',
  role: 'string',
  mount: 'string',
  source: 'string',
} as const satisfies Partial<Record<keyof TokenRecord, string>>;

/** @throws AccessError `record_unreadable` */
export function decodeTokenRecord(stored: Uint8Array): TokenRecord {
  const { format: version, ...members } = parseObject(stored);
  const record: Record<string, unknown> = { ...newMemberDefaults, ...members };
  const whole =
    version === format &&
    (record['type'] === 'service' || record['type'] === 'batch') &&
    Object.entries(scalars).every(([name, type]) => typeof record[name] === type) &&
    [record['policies'], record['boundCidrs'], record['groups']].every((texts) => Array.isArray(texts) && isTexts(texts)) &&
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
export const indexEntry = Buffer.of(format);

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
