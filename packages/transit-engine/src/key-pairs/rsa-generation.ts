import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { TransitError } from '../errors.ts';
import type { KeyPairBytes } from './key-pair.ts';

const generate = promisify(generateKeyPair);
let last: Promise<unknown> = Promise.resolve();
/** Searches under way and in line. Each takes seconds: more than these would wait longer than a caller does. */
const searchesMax = 8;
let searches = 0;

/**
 * A new RSA pair with the exponent 65537, found on the thread pool; the caller wipes it. One after the other: the search takes seconds, and
 * the pool's few threads sync the log as well.
 * @throws TransitError `busy_generation`
 */
export async function generateRsa(modulusLength: number): Promise<KeyPairBytes> {
  const search = async (): Promise<KeyPairBytes> => {
    const { privateKey, publicKey } = await generate('rsa', { modulusLength, publicExponent: 0x10001 });
    return {
      material: privateKey.export({ type: 'pkcs8', format: 'der' }),
      publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    };
  };
  if (searches >= searchesMax) throw new TransitError('busy_generation', 'too many RSA keys are being made; nothing was done');
  searches += 1;
  const mine = last.then(search).finally(() => {
    searches -= 1;
  });
  last = mine.catch(() => undefined);
  return mine;
}
