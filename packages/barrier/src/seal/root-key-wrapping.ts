import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Write } from '@transitd/storage-fsm';
import { encryptValue, type TermKey } from '../keyring/value.ts';
import { keyBytes } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';
import { sealPath, unsealKeyPath } from '../records/paths.ts';
import { hasProvider, type OneSeal, type ShareCounts, type StaticKey } from './seal-config.ts';
import { ProviderError, type SealProvider } from './seal-provider.ts';
import { closeSeal, openSeal, type SealRecord, type SealTerms } from './seal-record.ts';
import type { ShareCollection } from './shares.ts';

/** The key that wraps the root key in a new record, and how the record names it. The caller wipes the key. */
export interface WrappingKey extends Pick<SealTerms, 'type' | 'name' | 'keyId' | 'wrappedKey'> {
  readonly key: Buffer;
}

/**
 * Returns the key that is to wrap the root key: with a Shamir seal the key of the shares, with a static seal the configured key, otherwise
 * a new key that the provider has encrypted. The provider must also have decrypted it: a ciphertext that nothing opens must not be stored.
 * @throws ProviderError
 */
export async function newWrappingKey(seal: OneSeal, sharedKey: Uint8Array): Promise<WrappingKey> {
  const { type } = seal;
  if (!hasProvider(seal)) {
    if (seal.type === 'shamir') return { type, keyId: '', key: Buffer.from(sharedKey) };
    return { type, keyId: seal.current.id, key: Buffer.from(seal.current.key) };
  }
  const key = randomBytes(keyBytes);
  try {
    const wrapped = await seal.provider.wrap(key);
    const opened = await unwrapKey(seal.provider, wrapped.keyId, wrapped.ciphertext);
    const same = timingSafeEqual(opened, key);
    opened.fill(0);
    if (!same) throw new ProviderError('malformed', `the ${type} seal does not decrypt to the key that it was given`);
    const { name } = seal;
    return { type, ...(name !== undefined && { name }), keyId: wrapped.keyId, wrappedKey: wrapped.ciphertext, key };
  } catch (error) {
    key.fill(0);
    throw error;
  }
}

/** The parts of a new seal. */
export interface NewSeal {
  readonly counts: ShareCounts;
  readonly shareHashes: readonly Buffer[];
  readonly wrapping: WrappingKey;
  readonly rootKey: Uint8Array;
}

/** The write of the record first. */
type SealWrites = readonly [{ readonly path: string; readonly value: Buffer }, ...Write[]];

/**
 * Returns the writes that put a seal in force: its record, and `core/unseal-key` with the key that wraps the root key, which the leader
 * needs for joins. A static seal has no `core/unseal-key`, because every node has the key in its configuration.
 */
export function sealWrites({ counts, shareHashes, wrapping, rootKey }: NewSeal, term: TermKey): SealWrites {
  const { key, ...named } = wrapping;
  const { shares, threshold } = counts;
  const value = closeSeal({ ...named, shares, threshold, shareHashes }, key, rootKey);
  const record = { path: sealPath, value };
  return [record, { path: unsealKeyPath, value: named.type === 'static' ? null : encryptValue(term, unsealKeyPath, key) }];
}

/** Unwraps the root key with enough shares; the caller wipes it. @throws BarrierError `barrier_corrupt` */
export async function unwrapByShares(record: SealRecord, shares: ShareCollection): Promise<Buffer> {
  const key = await shares.combine();
  const rootKey = openSeal(record, key);
  key.fill(0);
  if (rootKey === undefined)
    throw new BarrierError('barrier_corrupt', `the key from these shares does not open the record ${sealPath}`);
  return rootKey;
}

/**
 * Returns the key that wraps the root key, from the configuration or from the provider; the caller wipes it.
 * @throws BarrierError `seal_mismatch`; ProviderError
 */
export async function sealKeyOf(seal: OneSeal, { keyId, wrappedKey = '' }: SealTerms): Promise<Buffer> {
  if (!hasProvider(seal)) return Buffer.from(staticKey(seal, keyId).key);
  return unwrapKey(seal.provider, keyId, wrappedKey);
}

async function unwrapKey(provider: SealProvider, keyId: string, ciphertext: string): Promise<Buffer> {
  const key = await provider.unwrap({ keyId, ciphertext });
  if (key.length === keyBytes) return key;
  key.fill(0);
  throw new ProviderError('malformed', `the ${provider.type} seal returned a key that does not have ${keyBytes} bytes`);
}

/** Unwraps the root key with the key of `sealKeyOf`; the caller wipes both. @throws BarrierError `barrier_corrupt` */
export function unwrapBySealKey(record: SealRecord, sealKey: Uint8Array): Buffer {
  const rootKey = openSeal(record, sealKey);
  if (rootKey === undefined)
    throw new BarrierError('barrier_corrupt', `the seal key "${record.keyId}" does not open the record ${sealPath}`);
  return rootKey;
}

/** Returns the configured key with this id, current or previous. @throws BarrierError `seal_mismatch` */
export function staticKey(seal: OneSeal, id: string): StaticKey {
  const keys = seal.type === 'static' ? [seal.current, seal.previous] : [];
  const key = keys.find((candidate) => candidate?.id === id);
  if (key === undefined) throw new BarrierError('seal_mismatch', `no seal key with the id "${id}" is configured`);
  return key;
}
