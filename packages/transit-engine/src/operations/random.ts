import { randomFillSync } from 'node:crypto';
import { printableName } from '../formats/printable-name.ts';
import { TransitError } from '../values/errors.ts';

/** A request for random bytes. */
export interface RandomRequest {
  /** 1 to 131,072; 32 when absent. */
  readonly bytes?: number | undefined;
  /** `hex` or `base64`, the default. */
  readonly format?: string | undefined;
  /** `platform` (the default), `seal` or `all`. */
  readonly source?: string | undefined;
}

export interface RandomResult {
  readonly randomBytes: string;
  readonly warnings: readonly string[];
}

export const randomSources: readonly string[] = ['platform', 'seal', 'all'];
export const randomBytesMax = 131_072;

/** Returns random bytes of the operating system. @throws TransitError `invalid_request` */
export function random({ bytes = 32, format = 'base64', source = 'platform' }: RandomRequest): RandomResult {
  if (!randomSources.includes(source)) {
    throw refusal(`unsupported entropy source "${printableName(source)}"; must be "platform" or "seal", or "all"`);
  }
  if (bytes < 1) throw refusal("'bytes' cannot be less than 1");
  if (bytes > randomBytesMax) throw refusal(`'bytes' should be less than ${randomBytesMax}`);
  const encoding = encodingOf(format);
  const drawn = randomFillSync(Buffer.allocUnsafeSlow(bytes)); // not from Node's buffer pool, because the bytes are wiped
  const randomBytes = drawn.toString(encoding);
  drawn.fill(0);
  return { randomBytes, warnings: source === 'platform' ? [] : [noOtherSource] };
}

/** @throws TransitError `invalid_request` */
export function encodingOf(format: string): 'hex' | 'base64' {
  if (format === 'hex' || format === 'base64') return format;
  throw refusal(`unsupported encoding format "${printableName(format)}"; must be "hex" or "base64"`);
}

const noOtherSource = 'no seal/entropy augmentation available, using platform entropy source';
const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
