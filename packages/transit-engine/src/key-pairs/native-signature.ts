import { type SignKeyObjectInput, sign, type VerifyKeyObjectInput, verify } from 'node:crypto';
import { promisify } from 'node:util';

/** Longest input to sign or verify on this thread. Hashing a longer one would block the event loop. */
const onThreadBytesMax = 1024 * 1024;

const signOnPool = promisify(sign) as unknown as (
  hash: string | null,
  input: Uint8Array,
  key: SignKeyObjectInput,
) => Promise<Buffer>;
const verifyOnPool = promisify(verify) as unknown as (
  hash: string | null,
  input: Uint8Array,
  key: VerifyKeyObjectInput,
  signature: Uint8Array,
) => Promise<boolean>;

/**
 * Signs long inputs on the thread pool, and short ones on this thread, which is faster.
 * @param hash - OpenSSL's name; null if the key determines it
 */
export const signNatively = async (hash: string | null, input: Uint8Array, key: SignKeyObjectInput): Promise<Buffer> =>
  input.length > onThreadBytesMax ? signOnPool(hash, input, key) : sign(hash, input, key);

export const verifyNatively = async (
  hash: string | null,
  input: Uint8Array,
  key: VerifyKeyObjectInput,
  signature: Uint8Array,
): Promise<boolean> =>
  input.length > onThreadBytesMax ? verifyOnPool(hash, input, key, signature) : verify(hash, input, key, signature);

/**
 * Checks with one signature that two halves belong together. The signature is made on the thread pool, because an unchecked key may be very
 * slow.
 */
export async function isPair(
  hash: string | null,
  privateKey: SignKeyObjectInput,
  publicKey: VerifyKeyObjectInput,
): Promise<boolean> {
  return verifyOnPool(hash, probe, publicKey, await signOnPool(hash, probe, privateKey));
}

const probe = Buffer.from('the halves of one key');
