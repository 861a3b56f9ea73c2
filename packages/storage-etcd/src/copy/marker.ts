import { fieldsIn, isCount } from '@transitd/storage-fsm';

/**
 * The facts that a commit writes about itself, in the same transaction as its records. With them a copy notices that a watch has lost an
 * event: the version of the key rises by one with each commit, and the revision has exactly these events.
 */
export interface Marker {
  /** Random, so that two histories of etcd (before and after a restore) never have the same marker. */
  readonly attempt: string;
  /** Number of keys that the transaction wrote, without the marker. */
  readonly puts: number;
  /** Number of keys that it deleted; absent if that does not matter, because the copy has dropped them before. */
  readonly deletes?: number;
}

export const encodeMarker = (marker: Marker): Uint8Array => Buffer.from(JSON.stringify(marker));

/** Returns undefined for bytes that {@link encodeMarker} did not write. */
export function decodeMarker(bytes: Uint8Array): Marker | undefined {
  const { attempt, puts, deletes } = fieldsIn(bytes);
  if (typeof attempt !== 'string' || !isCount(puts) || (deletes !== undefined && !isCount(deletes))) return undefined;
  return { attempt, puts, ...(deletes !== undefined && { deletes }) };
}

/** Names a staged transaction that is in effect since this was written. */
export interface StagedPointer {
  readonly attempt: string;
  readonly chunks: number;
  /** SHA-256 of the encoded transaction, in hexadecimal. */
  readonly digest: string;
}

export const encodePointer = (pointer: StagedPointer): Uint8Array => Buffer.from(JSON.stringify(pointer));

/** Returns undefined for bytes that {@link encodePointer} did not write. */
export function decodePointer(bytes: Uint8Array): StagedPointer | undefined {
  const { attempt, chunks, digest } = fieldsIn(bytes);
  if (typeof attempt !== 'string' || !isCount(chunks) || typeof digest !== 'string') return undefined;
  return { attempt, chunks, digest };
}
