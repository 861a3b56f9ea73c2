import type { KeyPair } from '../key-pairs/key-pair.ts';
import { derivePair } from '../keys/derivation.ts';
import type { LoadedKey } from '../keys/key-cache.ts';
import { managedPair } from '../managed/managed-pair.ts';
import type { Tools } from './operation.ts';

/** The key pair of a version or, on a derived key, of a context. */
export interface SigningPair {
  readonly pair: KeyPair;
  /** The public half as callers see it; present on derived keys, where no other response contains it. */
  readonly publicKey?: string;
}

/** @param context - empty on keys that are not derived */
export async function signingPair(tools: Tools, key: LoadedKey, version: number, context: Uint8Array): Promise<SigningPair> {
  const loaded = key.versions.get(version) ?? (await tools.keys.loadVersion(key, version));
  if (loaded.pair !== undefined) return { pair: loaded.pair };
  if (loaded.managed !== undefined) {
    const { id, publicKey } = loaded.managed;
    return { pair: await managedPair(await tools.managedKeys.find(id), publicKey) };
  }
  const { type, record } = key;
  if (type.keyPair === undefined || loaded.key === undefined) throw new Error('the loaded version has no key pair');
  const bytes = derivePair(type, loaded.key, context, record.kdf);
  try {
    return { pair: type.keyPair.load(bytes), publicKey: type.keyPair.publicText(bytes.publicKey) };
  } finally {
    bytes.material.fill(0);
  }
}
