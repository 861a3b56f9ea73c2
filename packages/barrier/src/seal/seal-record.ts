import { closeBox, openBox } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';
import { sealPath } from '../records/paths.ts';
import { checkCounts, type SealId, type SealType, type ShareCounts } from './seal-config.ts';
import { ciphertextCharactersMax, providerSealTypes } from './seal-provider.ts';

/** The fields of the record other than the wrapped root key. All are associated data of the wrapping, so none can be exchanged. */
export interface SealTerms extends ShareCounts, SealId {
  /** SHA-256 of each key share (shamir) or recovery share (all other types). */
  readonly shareHashes: readonly Buffer[];
  /** Id of the static key, or of the provider's key; empty for a Shamir seal. */
  readonly keyId: string;
  /** The key that wraps the root key, as the provider has encrypted it; absent for `shamir` and `static`. */
  readonly wrappedKey?: string;
}

export interface SealRecord extends SealTerms {
  readonly wrappedRootKey: Buffer;
}

const format = 1;

/** Returns the record: plaintext JSON with the root key wrapped by `wrappingKey`. */
export function closeSeal(terms: SealTerms, wrappingKey: Uint8Array, rootKey: Uint8Array): Buffer {
  const { type, name, shares, threshold, keyId, wrappedKey } = terms;
  return Buffer.from(
    JSON.stringify({
      format,
      type,
      ...(name !== undefined && { name }),
      shares,
      threshold,
      shareHashes: terms.shareHashes.map((hash) => hash.toString('hex')),
      keyId,
      ...(wrappedKey !== undefined && { wrappedKey }),
      wrappedRootKey: closeBox(wrappingKey, encodeTerms(terms), rootKey).toString('base64'),
    }),
  );
}

/** Unwraps the root key, which the caller wipes. Returns undefined if this key did not wrap it or the record was changed. */
export const openSeal = (record: SealRecord, wrappingKey: Uint8Array): Buffer | undefined =>
  openBox(wrappingKey, encodeTerms(record), record.wrappedRootKey);

/** @throws BarrierError `barrier_corrupt` */
export function decodeSeal(stored: Uint8Array): SealRecord {
  try {
    const record = JSON.parse(Buffer.from(stored).toString('utf8')) as Record<string, unknown>;
    const { type, name, shares, threshold, shareHashes, keyId, wrappedKey, wrappedRootKey } = record;
    if (
      record['format'] === format &&
      isSealType(type) &&
      isSealName(type, name) &&
      isWrappedKey(type, wrappedKey) &&
      typeof shares === 'number' &&
      typeof threshold === 'number' &&
      Array.isArray(shareHashes) &&
      shareHashes.length === shares &&
      shareHashes.every((hash) => typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash)) &&
      typeof keyId === 'string' &&
      typeof wrappedRootKey === 'string'
    ) {
      return {
        ...checkCounts({ shares, threshold }),
        type,
        ...(name !== undefined && { name }),
        shareHashes: shareHashes.map((hash: string) => Buffer.from(hash, 'hex')),
        keyId,
        ...(wrappedKey !== undefined && { wrappedKey }),
        wrappedRootKey: Buffer.from(wrappedRootKey, 'base64'),
      };
    }
  } catch (error) {
    throw new BarrierError('barrier_corrupt', `the record ${sealPath} is unreadable`, { cause: error });
  }
  throw new BarrierError('barrier_corrupt', `the record ${sealPath} has an unknown format`);
}

/** Encodes the terms as one JSON array; different terms give different bytes. */
export const encodeTerms = ({ type, name, shares, threshold, keyId, shareHashes, wrappedKey }: SealTerms): Buffer => {
  const hashes = shareHashes.map((hash) => hash.toString('hex'));
  const terms = [sealPath, format, type, shares, threshold, keyId, hashes];
  const added = [...(wrappedKey === undefined ? [] : [wrappedKey]), ...(name === undefined ? [] : [{ name }])];
  return Buffer.from(JSON.stringify([...terms, ...added]));
};

const isSealType = (type: unknown): type is SealType =>
  type === 'shamir' || type === 'static' || providerSealTypes.some((known) => known === type);

/** Whether a value may be the wrapped key of a seal of this type. */
export const isWrappedKey = (type: SealType, value: unknown): value is string | undefined =>
  type === 'shamir' || type === 'static'
    ? value === undefined
    : typeof value === 'string' && value.length <= ciphertextCharactersMax && /^[\x21-\x7e]+$/.test(value);

/** Whether a value may be the name of a seal of this type. */
export const isSealName = (type: SealType, value: unknown): value is string | undefined =>
  value === undefined || (type !== 'shamir' && type !== 'static' && typeof value === 'string' && sealNamePattern.test(value));

const sealNamePattern = /^[\w-]{1,64}$/;
