import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeyPairBytes } from '../key-pair.ts';

const generate = promisify(generateKeyPair);
let last: Promise<unknown> = Promise.resolve();

/**
 * A new RSA pair with the exponent 65537, found on the thread pool; the caller wipes it. One after the other: the search takes seconds, and
 * the pool's few threads sync the log as well.
 */
export function generateRsa(modulusLength: number): Promise<KeyPairBytes> {
  const search = async (): Promise<KeyPairBytes> => {
    const { privateKey, publicKey } = await generate('rsa', { modulusLength, publicExponent: 0x10001 });
    return {
      material: privateKey.export({ type: 'pkcs8', format: 'der' }),
      publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    };
  };
  const mine = last.then(search);
  last = mine.catch(() => undefined);
  return mine;
}
