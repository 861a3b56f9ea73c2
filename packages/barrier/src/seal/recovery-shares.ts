import { decryptValue, encryptValue, type TermKey, termOf } from '../keyring/value.ts';
import { BarrierError } from '../records/errors.ts';
import { recoverySharesPath } from '../records/paths.ts';
import { checkCounts, type ShareCounts } from './seal-config.ts';

/** The recovery shares of a seal: their counts, and the SHA-256 of each. */
export interface RecoveryShares {
  readonly counts: ShareCounts;
  readonly shareHashes: readonly Buffer[];
}

const format = 1;
const hashPattern = /^[0-9a-f]{64}$/;

/** Returns the record of the recovery shares, for clusters of a replication set with seals of their own: their shares are the primary's. */
export function closeRecoveryShares(term: TermKey, { counts, shareHashes }: RecoveryShares): Buffer {
  const { shares, threshold } = counts;
  const hashes = shareHashes.map((hash) => hash.toString('hex'));
  return encryptValue(term, recoverySharesPath, Buffer.from(JSON.stringify({ format, shares, threshold, shareHashes: hashes })));
}

/** Reads the record with the keys of a keyring. @throws BarrierError `barrier_corrupt` */
export function openRecoveryShares(terms: ReadonlyMap<number, TermKey>, stored: Uint8Array): RecoveryShares {
  const term = terms.get(termOf(recoverySharesPath, stored));
  if (term === undefined) throw unreadable();
  const fields = JSON.parse(decryptValue(term, recoverySharesPath, stored).toString()) as Record<string, unknown>;
  const { shares, threshold, shareHashes } = fields;
  const isWhole =
    fields['format'] === format &&
    typeof shares === 'number' &&
    typeof threshold === 'number' &&
    Array.isArray(shareHashes) &&
    shareHashes.length === shares &&
    shareHashes.every((hash) => typeof hash === 'string' && hashPattern.test(hash));
  if (!isWhole) throw unreadable();
  return { counts: checkCounts({ shares, threshold }), shareHashes: shareHashes.map((hash: string) => Buffer.from(hash, 'hex')) };
}

const unreadable = (): BarrierError => new BarrierError('barrier_corrupt', `the record ${recoverySharesPath} is unreadable`);
