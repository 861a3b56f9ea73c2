import { randomBytes } from 'node:crypto';
import { TransitError } from '../errors.ts';
import type { KeyPairBytes } from '../key-pairs/key-pair.ts';
import type { FreshVersion } from './key.ts';
import type { KeyRecord } from './key-record.ts';
import { keyType } from './key-type.ts';

const hmacSecretBytes = 32;

/** What a version is made of; only key pairs have a public half. */
export interface VersionMaterial {
  readonly material: Uint8Array;
  readonly publicKey?: Uint8Array;
}

/** Whatever becomes of a version: its material is drawn, on the thread pool where that takes long, unless it is given. */
export interface VersionSource {
  readonly record: Pick<KeyRecord, 'type' | 'keySize'>;
  readonly nowMs: number;
  readonly given?: VersionMaterial | undefined;
}

/** Hands what a new version needs to `use`, and wipes it afterwards, given material included. */
export async function withFreshVersion<T>({ record, nowMs, given }: VersionSource, use: (fresh: FreshVersion) => T): Promise<T> {
  const drawn = given ?? (await drawMaterial(record));
  const hmacSecret = randomBytes(keyType(record.type).materialIsHmacSecret ? 0 : hmacSecretBytes);
  try {
    return use({ ...drawn, hmacSecret, createdMs: nowMs });
  } finally {
    drawn.material.fill(0);
    hmacSecret.fill(0);
  }
}

async function drawMaterial({ type, keySize }: VersionSource['record']): Promise<VersionMaterial | KeyPairBytes> {
  const { keyPair, materialBytes, managed } = keyType(type);
  if (managed) throw new TransitError('invalid_request', 'one of managed_key_name or managed_key_id is required');
  return keyPair === undefined ? { material: randomBytes(keySize === 0 ? materialBytes : keySize) } : keyPair.generate();
}
