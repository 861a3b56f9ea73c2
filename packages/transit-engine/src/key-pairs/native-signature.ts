import { type KeyObject, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { TaskLimit } from '@transitd/event-loop';

/** Longest input to sign or verify on this thread. Hashing a longer one would block the event loop. */
export const onThreadBytesMax = 1024 * 1024;

/** How to sign or verify: options of node:crypto. A missing option has node:crypto's default. */
export interface NativeOptions {
  /** OpenSSL's name of the hash; null if the key determines it. */
  readonly hash: string | null;
  /** RSA. */
  readonly padding?: number;
  /** RSA-PSS, in bytes or as a constant of node:crypto. */
  readonly saltLength?: number;
  /** ECDSA. */
  readonly dsaEncoding?: 'der' | 'ieee-p1363';
  /** Ed25519ctx and ML-DSA. */
  readonly context?: Uint8Array;
  /** The operation takes a large part of a millisecond or more, so it runs on the thread pool. */
  readonly isSlow?: boolean;
}

/** Signatures of one thread that run on the pool at the same time, if the pool is large enough. */
const signaturesMax = 2;
/** Other slow work that may be on the pool at the same time: two password hashes, a new RSA key, the check of an imported one. */
const otherWorkMax = 6;

/**
 * Returns how many signatures one thread may have on the thread pool, which all threads of the process share. All cryptography together
 * uses at most half of the pool, so that a write to the log never waits for it.
 * @param poolThreads - size of the pool (`UV_THREADPOOL_SIZE`, set in `transitd.mjs`)
 * @param threads - number of threads that sign
 */
export const signaturesAtOnce = (poolThreads: number, threads: number): number =>
  Math.max(1, Math.min(signaturesMax, Math.floor((poolThreads / 2 - otherWorkMax) / threads)));

/** Returns the size of the thread pool as libuv reads it: a text that begins with no number means one thread. */
export const poolSize = (text = '4'): number => Math.max(1, Number.parseInt(text, 10) || 1);

let atOnce = signaturesMax;
let onPool = new TaskLimit(atOnce);

/** Divides the thread pool between this number of threads. Each of them calls it before its first signature. */
export function divideThreadPool(threads: number): void {
  const part = signaturesAtOnce(poolSize(process.env['UV_THREADPOOL_SIZE']), threads);
  if (part === atOnce) return;
  atOnce = part;
  onPool = new TaskLimit(part);
}

/** Unchecked keys, which may be very slow, do not delay the signatures of other callers. */
const uncheckedOnPool = new TaskLimit(1);
const signOnPool = promisify(sign);
const verifyOnPool = promisify(verify);

/** Signs slow keys and long inputs on the thread pool, and everything else on this thread, which is faster. */
export async function signNatively(key: KeyObject, input: Uint8Array, options: NativeOptions): Promise<Buffer> {
  const { hash, isSlow } = options;
  if (isSlow === true || input.length > onThreadBytesMax)
    return onPool.run(() => signOnPool(hash, input, withOptions(key, options)));
  return sign(hash, input, withOptions(key, options));
}

/** Verifies slow keys and long inputs on the thread pool. */
export async function verifyNatively(
  key: KeyObject,
  input: Uint8Array,
  signature: Uint8Array,
  options: NativeOptions,
): Promise<boolean> {
  const { hash, isSlow } = options;
  if (isSlow === true || input.length > onThreadBytesMax)
    return onPool.run(() => verifyOnPool(hash, input, withOptions(key, options), signature));
  return verify(hash, input, withOptions(key, options), signature);
}

/**
 * Returns the key with the options of the next call as its properties. node:crypto reads the options of a signature from the object that
 * holds the key, before the call returns. If that object is not a KeyObject, it throws and catches two exceptions to find out, which takes
 * about 20 µs (decision 113).
 */
const withOptions = (key: KeyObject, { padding, saltLength, dsaEncoding, context }: NativeOptions): KeyObject =>
  Object.assign(key, { padding, saltLength, dsaEncoding, context });

/**
 * Checks with one signature that two halves belong together. The signature is made on the thread pool, because an unchecked key may be very
 * slow.
 */
export async function isPair(hash: string | null, privateKey: KeyObject, publicKey: KeyObject): Promise<boolean> {
  const options = { hash };
  return uncheckedOnPool.run(async () => {
    const signature = await signOnPool(hash, probe, withOptions(privateKey, options));
    return verifyOnPool(hash, probe, withOptions(publicKey, options), signature);
  });
}

const probe = Buffer.from('the halves of one key');
