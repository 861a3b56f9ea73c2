import { TransitError } from '../errors.ts';
import type { KeyPair } from '../key-pairs/key-pair.ts';
import { derivePair } from '../keys/derivation.ts';
import type { LoadedKey } from '../keys/key-cache.ts';
import { managedPair } from '../managed/managed-pair.ts';
import { type Tools, versionOf } from './operation.ts';

/** The key pair of one version, or the one that belongs to a context. */
export interface PairInUse {
  readonly pair: KeyPair;
  /** On derived keys: the public half as callers see it, since no other place shows it. */
  readonly publicKey?: string;
}

/** @param context - empty on keys that are not derived */
export async function pairOf(tools: Tools, key: LoadedKey, version: number, context: Uint8Array): Promise<PairInUse> {
  const loaded = key.versions.get(version) ?? (await versionOf(tools, key, version));
  if (loaded.pair !== undefined) return { pair: loaded.pair };
  if (loaded.managed !== undefined) {
    const { id, publicKey } = loaded.managed;
    return { pair: await managedPair(await tools.managedKeys.find(id), publicKey) };
  }
  const { type, record } = key;
  if (type.keyPair === undefined || loaded.key === undefined) throw new Error('a version was loaded as one without a key pair');
  const bytes = derivePair(type, loaded.key, context, record.kdf);
  try {
    return { pair: type.keyPair.load(bytes), publicKey: type.keyPair.publicText(bytes.publicKey) };
  } finally {
    bytes.material.fill(0);
  }
}

/** The version to sign with: the latest, unless another is asked for. @throws TransitError `key_version_unavailable` */
export function versionForSigning({ record }: LoadedKey, asked: number): number {
  const { latestVersion, minEncryptionVersion, minDecryptionVersion } = record;
  if (asked === 0) return latestVersion;
  if (asked < 0) throw unavailable('requested version for signing is negative');
  if (asked > latestVersion) throw unavailable('requested version for signing is higher than the latest key version');
  if (asked < minEncryptionVersion) {
    throw unavailable('requested version for signing is less than the minimum encryption key version');
  }
  if (asked < minDecryptionVersion) throw unavailable('no such key version');
  return asked;
}

const unavailable = (message: string): TransitError => new TransitError('key_version_unavailable', message);
