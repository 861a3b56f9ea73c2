import { nonceBytes } from '../algorithms/nonce-pool.ts';
import { TransitError } from '../values/errors.ts';
import type { ManagedKey, ManagedUsage } from './provider.ts';

/** A plaintext or a ciphertext. */
export interface ManagedCipherRequest {
  readonly bytes: Uint8Array;
  readonly associatedData: Uint8Array;
  /**
   * The initialization vector of 12 bytes if the caller supplies one, and then the ciphertext does not contain the vector. Otherwise empty.
   */
  readonly nonce: Uint8Array;
}

/** Maximum input of one call. Hardware modules have little memory. */
export const managedBytesMax = 1024 * 1024;

/** @param fresh - returns a random vector, which is prepended to the ciphertext @throws TransitError */
export async function encryptManaged(
  key: ManagedKey,
  { bytes, associatedData, nonce }: ManagedCipherRequest,
  fresh: () => Uint8Array,
): Promise<Buffer> {
  checkUsage(key, 'encrypt');
  checkSize(bytes);
  const own = nonce.length === 0 ? fresh() : undefined;
  const ciphertext = await key.encrypt({ input: bytes, iv: own ?? nonce, associatedData });
  return own === undefined ? ciphertext : Buffer.concat([own, ciphertext]);
}

/** @throws TransitError */
export async function decryptManaged(key: ManagedKey, { bytes, associatedData, nonce }: ManagedCipherRequest): Promise<Buffer> {
  checkUsage(key, 'decrypt');
  checkSize(bytes);
  const withVector = nonce.length === 0;
  if (withVector && bytes.length < nonceBytes)
    throw new TransitError('invalid_ciphertext', 'invalid ciphertext: it is too short');
  const [iv, input] = withVector ? [bytes.subarray(0, nonceBytes), bytes.subarray(nonceBytes)] : [nonce, bytes];
  return key.decrypt({ input, iv, associatedData });
}

/** @throws TransitError `invalid_request` */
export function checkUsage({ name, usages }: ManagedKey, usage: ManagedUsage): void {
  if (!usages.has(usage)) throw new TransitError('invalid_request', `managed key ${name} may not be used to ${usage}`);
}

function checkSize({ length }: Uint8Array): void {
  if (length <= managedBytesMax) return;
  throw new TransitError('invalid_request', `managed keys take at most ${managedBytesMax} bytes at a time`);
}
