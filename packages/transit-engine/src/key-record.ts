import { DamagedRecord } from './errors.ts';
import { isKeyType } from './key-type.ts';

/** A key's configuration; its versions lie in records of their own, under `id`. Version numbers start at 1. */
export interface KeyRecord {
  /** Random, made with the key and never used again, so that a new key of an old name shares nothing with it. */
  readonly id: string;
  readonly type: string;
  readonly derived: boolean;
  readonly convergent: boolean;
  readonly exportable: boolean;
  readonly allowPlaintextBackup: boolean;
  readonly deletionAllowed: boolean;
  readonly imported: boolean;
  /** Seconds; 0 turns automatic rotation off. */
  readonly autoRotatePeriodS: number;
  readonly latestVersion: number;
  /** At least 1. */
  readonly minDecryptionVersion: number;
  /** 0 or at least `minDecryptionVersion`. */
  readonly minEncryptionVersion: number;
  /** Versions below it are gone for good; 0 until the key is trimmed. At most both other minimums. */
  readonly minAvailableVersion: number;
}

const formatVersion = 1;

const fieldTypes: Readonly<Record<keyof KeyRecord, 'string' | 'boolean' | 'number'>> = {
  id: 'string',
  type: 'string',
  derived: 'boolean',
  convergent: 'boolean',
  exportable: 'boolean',
  allowPlaintextBackup: 'boolean',
  deletionAllowed: 'boolean',
  imported: 'boolean',
  autoRotatePeriodS: 'number',
  latestVersion: 'number',
  minDecryptionVersion: 'number',
  minEncryptionVersion: 'number',
  minAvailableVersion: 'number',
};

/** JSON in UTF-8 with a format number; it holds no key material. */
export const encodeKeyRecord = (record: KeyRecord): Uint8Array =>
  Buffer.from(JSON.stringify({ format: formatVersion, ...record }));

/** @throws DamagedRecord for anything that {@link encodeKeyRecord} did not write */
export function decodeKeyRecord(bytes: Uint8Array): KeyRecord {
  const { format, ...record } = parseObject(bytes);
  if (format !== formatVersion) throw new DamagedRecord('a key record has a format that this program does not know');
  if (!isKeyRecord(record)) throw new DamagedRecord('a key record lacks a field');
  return record;
}

/** @throws DamagedRecord unless the bytes are a JSON object */
export function parseObject(bytes: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString());
    if (typeof value === 'object' && value !== null) return { ...value };
  } catch {
    // Said below: the parser's own message could quote the record.
  }
  throw new DamagedRecord('a record is not the JSON object it should be');
}

function isKeyRecord(record: object): record is KeyRecord {
  const fields = new Map<string, unknown>(Object.entries(record));
  const type = fields.get('type');
  return (
    Object.entries(fieldTypes).every(([field, expected]) => typeof fields.get(field) === expected) &&
    typeof type === 'string' &&
    isKeyType(type)
  );
}
