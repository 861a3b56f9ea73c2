import { closeBox, openBox } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';
import { sealPath } from '../records/paths.ts';
import { checkCounts, type SealType, type ShareCounts } from './seal-config.ts';

/** The fields of the record other than the wrapped root key. All are associated data of the wrapping, so none can be exchanged. */
export interface SealTerms extends ShareCounts {
  readonly type: SealType;
  /** SHA-256 of each key share (shamir) or recovery share (static). */
  readonly shareHashes: readonly Buffer[];
  /** Id of the static key that wraps the root key; empty for a Shamir seal. */
  readonly keyId: string;
}

export interface SealRecord extends SealTerms {
  readonly wrappedRootKey: Buffer;
}

const format = 1;

/** Returns the record: plaintext JSON with the root key wrapped by `wrappingKey`. */
export function closeSeal(terms: SealTerms, wrappingKey: Uint8Array, rootKey: Uint8Array): Buffer {
  const { type, shares, threshold, keyId } = terms;
  return Buffer.from(
    JSON.stringify({
      format,
      type,
      shares,
      threshold,
      shareHashes: terms.shareHashes.map((hash) => hash.toString('hex')),
      keyId,
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
    const { type, shares, threshold, shareHashes, keyId, wrappedRootKey } = record;
    if (
      record['format'] === format &&
      (type === 'shamir' || type === 'static') &&
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
        shareHashes: shareHashes.map((hash: string) => Buffer.from(hash, 'hex')),
        keyId,
        wrappedRootKey: Buffer.from(wrappedRootKey, 'base64'),
      };
    }
  } catch (error) {
    throw new BarrierError('barrier_corrupt', `the record ${sealPath} is unreadable`, { cause: error });
  }
  throw new BarrierError('barrier_corrupt', `the record ${sealPath} has an unknown format`);
}

/** Encodes the terms as one JSON array; different terms give different bytes. */
export const encodeTerms = ({ type, shares, threshold, keyId, shareHashes }: SealTerms): Buffer =>
  Buffer.from(
    JSON.stringify([sealPath, format, type, shares, threshold, keyId, shareHashes.map((hash) => hash.toString('hex'))]),
  );
