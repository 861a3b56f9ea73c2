import { createHash } from 'node:crypto';
import { inPieces } from '@transitd/event-loop';
import { defaultHash, hashAlgorithm } from '../algorithms/hash-algorithm.ts';
import { printableName } from '../formats/printable-name.ts';
import { TransitError } from '../values/errors.ts';
import { bytesOf } from './inputs.ts';
import { encodingOf } from './random.ts';

export interface HashRequest {
  /** base64; required, but may be empty. */
  readonly input?: string | undefined;
  readonly algorithm?: string | undefined;
  /** `hex`, the default, or `base64`. */
  readonly format?: string | undefined;
}

export interface HashResult {
  readonly sum: string;
}

/** Computes a hash without a key (FIPS 180-4, FIPS 202). @throws TransitError `invalid_request` */
export async function hashOf({ input, algorithm = defaultHash, format = 'hex' }: HashRequest): Promise<HashResult> {
  const message = bytesOf(input, 'input missing');
  const encoding = encodingOf(format);
  const name = hashAlgorithm(algorithm);
  if (name === undefined) throw new TransitError('invalid_request', `unsupported algorithm ${printableName(algorithm)}`);
  const hash = createHash(name);
  const pending = inPieces(message, (piece) => hash.update(piece));
  if (pending !== undefined) await pending;
  return { sum: hash.digest(encoding) };
}
