import { type SignKeyObjectInput, sign, type VerifyKeyObjectInput, verify } from 'node:crypto';
import { promisify } from 'node:util';

/** What is signed or verified on this thread: hashing more would keep other requests waiting. */
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

/** Long inputs on the thread pool, short ones here, where that costs less. @param hash - as OpenSSL calls it; null where the key knows */
export const signNatively = async (hash: string | null, input: Uint8Array, key: SignKeyObjectInput): Promise<Buffer> =>
  input.length > onThreadBytesMax ? signOnPool(hash, input, key) : sign(hash, input, key);

export const verifyNatively = async (
  hash: string | null,
  input: Uint8Array,
  key: VerifyKeyObjectInput,
  signature: Uint8Array,
): Promise<boolean> =>
  input.length > onThreadBytesMax ? verifyOnPool(hash, input, key, signature) : verify(hash, input, key, signature);

/** On the thread pool whatever the length: a key that was never used may be slower than any that is in use. */
export async function isPair(
  hash: string | null,
  privateKey: SignKeyObjectInput,
  publicKey: VerifyKeyObjectInput,
): Promise<boolean> {
  return verifyOnPool(hash, probe, publicKey, await signOnPool(hash, probe, privateKey));
}

const probe = Buffer.from('the halves of one key');
