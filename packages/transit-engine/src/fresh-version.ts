import { randomBytes } from 'node:crypto';
import type { FreshVersion } from './key.ts';
import type { KeyRecord } from './key-record.ts';
import { keyType } from './key-type.ts';

const hmacSecretBytes = 32;

/** What becomes of a version: its material is drawn unless it is given. */
export interface VersionSource {
  readonly record: Pick<KeyRecord, 'type' | 'keySize'>;
  readonly nowMs: number;
  readonly material?: Uint8Array;
}

/** Hands what a new version needs to `use`, and wipes it afterwards, given material included. */
export function withFreshVersion<T>({ record, nowMs, material: given }: VersionSource, use: (fresh: FreshVersion) => T): T {
  const { materialBytes, materialIsHmacSecret } = keyType(record.type);
  const material = given ?? randomBytes(record.keySize === 0 ? materialBytes : record.keySize);
  const hmacSecret = randomBytes(materialIsHmacSecret ? 0 : hmacSecretBytes);
  try {
    return use({ material, hmacSecret, createdMs: nowMs });
  } finally {
    material.fill(0);
    hmacSecret.fill(0);
  }
}
