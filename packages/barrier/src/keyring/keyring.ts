import { randomBytes } from 'node:crypto';
import { closeBox, keyBytes, openBox } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';
import { keyringPath } from '../records/paths.ts';
import type { TermKey } from './value.ts';

/** When a term's key was installed. */
export interface Installation {
  /** Milliseconds since the epoch. */
  readonly installedMs: number;
  /** The replicated count of written values at that moment. All later values are encrypted under this key. */
  readonly valuesAtInstall: number;
}

export type Term = TermKey & Installation;

/** All keys that have ever encrypted values; the newest one encrypts new values. */
export interface Keyring {
  /** All keys are slices of this buffer, so that wiping it wipes them all. */
  readonly encoded: Buffer;
  readonly terms: ReadonlyMap<number, Term>;
  readonly newest: Term;
}

/** Returns the error for a change that conflicts with other changes of the keyring, again and again. */
export const keyringConflict = (): BarrierError => new BarrierError('conflict', 'the keyring changes too often; try again');

const format = 1;
const headerBytes = 1 + 4;
const termBytes = 4 + 8 + 8 + keyBytes;

/** Returns a keyring with one random key, term 1. */
export const newKeyring = (installation: Installation): Keyring => decodeKeyring(append(header(), 1, installation));

/** Returns a copy of `keyring` with one more random key, the next term. */
export const withNewTerm = (keyring: Keyring, installation: Installation): Keyring =>
  decodeKeyring(append(keyring.encoded, keyring.newest.term + 1, installation));

/** Overwrites every key. The keyring, and any term taken from it, must not be used afterwards. */
export function wipeKeyring(keyring: Keyring): void {
  keyring.encoded.fill(0);
}

/** Encrypts the keyring as its record: `format u8 | box under the root key`. */
export const closeKeyring = (rootKey: Uint8Array, { encoded }: Keyring): Buffer =>
  Buffer.concat([Buffer.of(format), closeBox(rootKey, associatedData, encoded)]);

/** Decrypts a keyring record; returns undefined if the root key does not open it. @throws BarrierError `barrier_corrupt`: unknown format */
export function openKeyring(rootKey: Uint8Array, stored: Uint8Array): Keyring | undefined {
  if (stored[0] !== format) throw new BarrierError('barrier_corrupt', `the record ${keyringPath} has an unknown format`);
  const encoded = openBox(rootKey, associatedData, stored.subarray(1));
  return encoded && decodeKeyring(encoded);
}

const associatedData = Buffer.concat([Buffer.of(format), Buffer.from(keyringPath, 'utf8')]);

function header(): Buffer {
  const bytes = Buffer.alloc(headerBytes);
  bytes.writeUInt8(format);
  return bytes;
}

/**
 * Appends a random key to an encoded keyring: `format u8 | terms u32`, then for each term
 * `term u32 | installed ms u64 | values at install u64 | key`, big-endian.
 */
function append(encoded: Buffer, term: number, { installedMs, valuesAtInstall }: Installation): Buffer {
  const longer = Buffer.alloc(encoded.length + termBytes);
  encoded.copy(longer);
  longer.writeUInt32BE(longer.readUInt32BE(1) + 1, 1);
  let offset = longer.writeUInt32BE(term, encoded.length);
  offset = longer.writeBigUInt64BE(BigInt(installedMs), offset);
  offset = longer.writeBigUInt64BE(BigInt(valuesAtInstall), offset);
  const key = randomBytes(keyBytes);
  key.copy(longer, offset);
  key.fill(0);
  return longer;
}

/** Decodes a keyring; its keys are slices of `encoded`. @throws BarrierError `barrier_corrupt` */
export function decodeKeyring(encoded: Buffer): Keyring {
  const terms = new Map<number, Term>();
  let newest: Term | undefined;
  for (let offset = headerBytes; offset < encoded.length; offset += termBytes) {
    newest = {
      term: encoded.readUInt32BE(offset),
      installedMs: Number(encoded.readBigUInt64BE(offset + 4)),
      valuesAtInstall: Number(encoded.readBigUInt64BE(offset + 12)),
      key: encoded.subarray(offset + 20, offset + termBytes),
    };
    terms.set(newest.term, newest);
  }
  if (newest === undefined || encoded[0] !== format || encoded.length !== headerBytes + terms.size * termBytes)
    throw new BarrierError('barrier_corrupt', `the record ${keyringPath} is not a keyring`);
  return { encoded, terms, newest };
}
