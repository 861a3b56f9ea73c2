import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { SerialQueue } from '@transitd/event-loop';
import { TransitError } from '../values/errors.ts';
import type { KeyPairBytes } from './key-pair.ts';

const generate = promisify(generateKeyPair);
/** Each generation takes seconds: a longer queue would take longer than a caller waits. */
const generationsMax = 8;
const queue = new SerialQueue(
  generationsMax,
  () => new TransitError('busy_generation', 'too many RSA keys are being made; nothing was done'),
);

/**
 * Generates an RSA pair with the exponent 65537 on the thread pool. The caller wipes it. Pairs are generated one after the other, because
 * each takes seconds and the pool's few threads also sync the log.
 * @throws TransitError `busy_generation`
 */
export const generateRsa = (modulusLength: number): Promise<KeyPairBytes> =>
  queue.run(async () => {
    const { privateKey, publicKey } = await generate('rsa', { modulusLength, publicExponent: 0x10001 });
    return {
      material: privateKey.export({ type: 'pkcs8', format: 'der' }),
      publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    };
  });
