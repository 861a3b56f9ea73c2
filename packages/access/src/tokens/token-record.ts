import { recordUnreadable } from '../values/errors.ts';

/** A service token has a stored record; a batch token contains its record, encrypted. */
export type TokenType = 'service' | 'batch';

/** The record of a token. Times are in milliseconds since the epoch, durations in seconds. */
export interface TokenRecord {
  readonly type: TokenType;
  /** Identifies the token. It is secret but not a credential. Empty for a batch token. */
  readonly accessor: string;
  /** Sorted, without duplicates. */
  readonly policies: readonly string[];
  readonly displayName: string;
  readonly meta: Readonly<Record<string, string>>;
  /** Path of the request that made the token, such as `auth/token/create`. */
  readonly path: string;
  readonly createdMs: number;
  /** Counted from the creation of the token; 0 for no expiry. */
  readonly ttlS: number;
  /** 0 for no expiry. */
  readonly expiresMs: number;
  /** 0 when none was requested. */
  readonly explicitMaxTtlS: number;
  /** Maximum TTL that the settings of the login gave the token. It limits renewals; 0 if only the node's maximum applies. */
  readonly maxTtlS: number;
  /** TTL after each renewal, without an overall maximum; 0 when it is not periodic. */
  readonly periodS: number;
  readonly renewable: boolean;
  /** Id of the parent token, whose revocation also revokes this token; empty for an orphan. */
  readonly parent: string;
  /** Keyed hash of the accessor of the parent token. A token made later with the parent's id has another accessor. Empty for an orphan. */
  readonly parentAccessorId: string;
  /** Number of ancestors of the token. */
  readonly generation: number;
  /** Remaining uses; 0 for no limit, negative after the last use. */
  readonly usesLeft: number;
  /** 0 until the token is renewed. */
  readonly renewedMs: number;
  /** Name of the token role; empty for none. */
  readonly role: string;
  /** Addresses that may use the token; empty for any. */
  readonly boundCidrs: readonly string[];
  /** SHA-256 in hex of the client certificate without which the token cannot be used; empty for none. */
  readonly boundCertificate: string;
  /** The auth method that made the token, as `<path>:<id>`; disabling the method revokes the token. Empty for none. */
  readonly mount: string;
  /** Path of the record of the user or role of the login. The token can be renewed while this record exists. Empty for none. */
  readonly source: string;
  /** Groups of the user whose policies were added to the policies of the role; empty for none. */
  readonly groups: readonly string[];
}

const format = 1;
/** The format of a token that is bound to a certificate: a version that would not check the certificate cannot read it. */
const boundFormat = 2;

/** Encodes a record as JSON with a format number. */
export const encodeTokenRecord = ({ boundCertificate, ...record }: TokenRecord): Buffer =>
  Buffer.from(
    JSON.stringify(boundCertificate === '' ? { format, ...record } : { format: boundFormat, ...record, boundCertificate }),
  );

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
  boundCertificate: 'string',
} as const satisfies Partial<Record<keyof TokenRecord, string>>;

/** @throws AccessError `record_unreadable` */
export function decodeTokenRecord(stored: Uint8Array): TokenRecord {
  const { format: version, ...written } = parseObject(stored);
  const record: Record<string, unknown> = version === format ? { ...written, boundCertificate: '' } : written;
  const whole =
    (version === format || (version === boundFormat && record['boundCertificate'] !== '')) &&
    (record['type'] === 'service' || record['type'] === 'batch') &&
    Object.entries(scalars).every(([name, type]) => typeof record[name] === type) &&
    [record['policies'], record['boundCidrs'], record['groups']].every((texts) => Array.isArray(texts) && isTexts(texts)) &&
    isObject(record['meta']) &&
    isTexts(Object.values(record['meta']));
  if (!whole) throw recordUnreadable();
  // Every field was checked above. The record is frozen because the cache shares it.
  return Object.freeze(record) as unknown as TokenRecord;
}

/** The record that maps an accessor to its token. */
interface AccessorRecord {
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

/** The value of an index entry: only its path matters. */
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
