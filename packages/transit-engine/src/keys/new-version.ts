import { randomBytes, randomUUID } from 'node:crypto';
import type { Transaction } from '@transitd/storage-fsm';
import { uuidBytes } from '../formats/uuid.ts';
import type { ManagedKeyReference, ManagedKeys } from '../managed/provider.ts';
import { TransitError } from '../values/errors.ts';
import { checkDerivation, createKey, type FreshVersion } from './key.ts';
import { type LoadedKey, loadedKey, loadedVersion } from './key-cache.ts';
import type { KeyRecord } from './key-record.ts';
import { keyType } from './key-type.ts';
import { type VersionView, versionView } from './key-view.ts';
import { isKeyName, type Paths } from './paths.ts';

const hmacSecretBytes = 32;

/** Returns a random key id: the digits of a version 4 UUID (RFC 9562), which Node draws in bulk. */
export const newKeyId = (): string => randomUUID().replaceAll('-', '');

/** The secret and the public part of a version. Only key pairs and managed keys have a public half. */
export interface VersionMaterial {
  readonly material: Uint8Array;
  readonly publicKey?: Uint8Array;
}

/** Reports when the material of keys is generated, which takes seconds for large RSA keys. */
export interface GenerationObserver {
  /** Called before new material is generated. Returns a function to call afterwards, with whether it failed. */
  generating(): ((failed: boolean) => void) | undefined;
}

/** The source of a new version's material: random bytes or a new key pair, unless the material is given. */
export interface VersionSource {
  readonly record: Pick<KeyRecord, 'type' | 'keySize'>;
  readonly nowMs: number;
  readonly given?: VersionMaterial | undefined;
  /** Absent if nobody wants to know. */
  readonly observer?: GenerationObserver | undefined;
}

/**
 * Passes a new version to `use` and wipes its secrets afterwards, including material that was given. RSA keys are generated on the thread
 * pool.
 */
export async function withFreshVersion<T>(
  { record, nowMs, given, observer }: VersionSource,
  use: (fresh: FreshVersion) => T,
): Promise<T> {
  const secrets = given === undefined ? await generated(record, observer) : withHmacSecret(record, given);
  try {
    return use({ ...secrets, createdMs: nowMs });
  } finally {
    secrets.material.fill(0);
    secrets.hmacSecret.fill(0);
  }
}

type VersionSecrets = VersionMaterial & Pick<FreshVersion, 'hmacSecret'>;

async function generated(record: VersionSource['record'], observer: GenerationObserver | undefined): Promise<VersionSecrets> {
  const ended = observer?.generating();
  let failed = true;
  try {
    const secrets = await newSecrets(record);
    failed = false;
    return secrets;
  } finally {
    ended?.(failed);
  }
}

async function newSecrets({ type, keySize }: VersionSource['record']): Promise<VersionSecrets> {
  const { keyPair, materialBytes, managed } = keyType(type);
  if (managed) throw new TransitError('invalid_request', 'one of managed_key_name or managed_key_id is required');
  if (keyPair !== undefined) return withHmacSecret({ type }, await keyPair.generate());
  // One draw for both secrets: a draw costs microseconds, however few bytes it is for.
  const size = keySize === 0 ? materialBytes : keySize;
  const drawn = randomBytes(size + hmacSecretSize(type));
  return { material: drawn.subarray(0, size), hmacSecret: drawn.subarray(size) };
}

const withHmacSecret = ({ type }: Pick<KeyRecord, 'type'>, made: VersionMaterial): VersionSecrets => ({
  ...made,
  hmacSecret: randomBytes(hmacSecretSize(type)),
});

const hmacSecretSize = (type: string): number => (keyType(type).materialIsHmacSecret ? 0 : hmacSecretBytes);

/**
 * Returns the material of a version of a managed key: the id of the referenced key, and its public half. Undefined for other types, and
 * when no managed key is named.
 * @throws TransitError
 */
export async function managedMaterial(
  managedKeys: ManagedKeys,
  { type }: Pick<KeyRecord, 'type'>,
  reference: ManagedKeyReference,
): Promise<VersionMaterial | undefined> {
  const named = (reference.managedKeyName ?? '') !== '' || (reference.managedKeyId ?? '') !== '';
  if (!keyType(type).managed || !named) return undefined;
  const { id, publicKey } = await managedKeys.bind(reference);
  return { material: uuidBytes(id), ...(publicKey && { publicKey }) };
}

/** Returns the record of a new key, held back until the secondary clusters have confirmed all of its versions if `isHeld`. */
export const newRecord = (record: KeyRecord, isHeld: boolean): KeyRecord =>
  isHeld ? { ...record, confirmedVersion: 0 } : record;

/** A key that is not stored yet. `transaction` stores it; the caller commits and wipes it. */
export interface NewKey {
  readonly key: LoadedKey;
  readonly firstVersion: VersionView;
  readonly transaction: Transaction;
}

export interface NewKeyOptions {
  /** Returns the material of the first version, or undefined for new material. */
  readonly given?: () => Promise<VersionMaterial | undefined>;
  /** Whether the stored key may not be used before the secondary clusters have confirmed it. */
  readonly isHeld?: boolean;
  /** Whether operations will use the key before it is stored, so that its first version has to be loaded. */
  readonly forUse?: boolean;
  readonly observer?: GenerationObserver | undefined;
}

/**
 * Makes a key with its first version.
 * @throws TransitError `invalid_request` for an invalid key name, and for a type that does not support the requested derivation
 */
export async function newKey(
  paths: Paths,
  name: string,
  settings: Omit<KeyRecord, 'id'>,
  nowMs: number,
  { given, isHeld = false, forUse = false, observer }: NewKeyOptions,
): Promise<NewKey> {
  if (!isKeyName(name)) throw new TransitError('invalid_request', 'invalid key name');
  checkDerivation(settings);
  const key = loadedKey(name, { ...settings, id: newKeyId(), latestCreatedMs: nowMs }, 0);
  return withFreshVersion({ record: key.record, nowMs, given: await given?.(), observer }, (fresh) => {
    const version = key.record.latestVersion;
    if (forUse) key.versions.set(version, loadedVersion(key, fresh));
    const firstVersion = versionView(key.record, { ...fresh, version });
    return { key, firstVersion, transaction: createKey(paths, name, newRecord(key.record, isHeld), fresh) };
  });
}
