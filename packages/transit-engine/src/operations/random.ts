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

/** A generator of random bytes outside of this machine, such as the device that has the seal's key. */
export interface RandomSource {
  /** Most bytes of one draw. */
  readonly bytesMax: number;
  /** Returns this number of random bytes, which the caller wipes. */
  draw(bytes: number): Promise<Buffer>;
}

/**
 * Returns random bytes of the operating system, of the seal, or of both combined by XOR. Without a source of the seal, the bytes are of the
 * operating system and a warning says so, as in the peers. If there is one and it fails, so does the request.
 * @param seal - absent if the seal gives no random bytes
 * @throws TransitError `invalid_request`; what the source throws
 */
export async function random(
  { bytes = 32, format = 'base64', source = 'platform' }: RandomRequest,
  seal?: RandomSource,
): Promise<RandomResult> {
  if (!randomSources.includes(source)) {
    throw refusal(`unsupported entropy source "${printableName(source)}"; must be "platform" or "seal", or "all"`);
  }
  if (bytes < 1) throw refusal("'bytes' cannot be less than 1");
  if (bytes > randomBytesMax) throw refusal(`'bytes' should be less than ${randomBytesMax}`);
  const encoding = encodingOf(format);
  const drawn = source === 'platform' || seal === undefined ? platformBytes(bytes) : await sealBytes(seal, source, bytes);
  const randomBytes = drawn.toString(encoding);
  drawn.fill(0);
  return { randomBytes, warnings: source === 'platform' || seal !== undefined ? [] : [noOtherSource] };
}

/** The bytes are not from Node's buffer pool, because they are wiped. */
const platformBytes = (bytes: number): Buffer => randomFillSync(Buffer.allocUnsafeSlow(bytes));

/** @throws TransitError `invalid_request` */
async function sealBytes(seal: RandomSource, source: string, bytes: number): Promise<Buffer> {
  if (bytes > seal.bytesMax) throw refusal(`'bytes' cannot be more than ${seal.bytesMax} for the source "${source}"`);
  const drawn = await seal.draw(bytes);
  if (source === 'seal') return drawn;
  const own = platformBytes(bytes);
  for (const [i, byte] of own.entries()) drawn[i] = (drawn[i] ?? 0) ^ byte;
  own.fill(0);
  return drawn;
}

/** @throws TransitError `invalid_request` */
export function encodingOf(format: string): 'hex' | 'base64' {
  if (format === 'hex' || format === 'base64') return format;
  throw refusal(`unsupported encoding format "${printableName(format)}"; must be "hex" or "base64"`);
}

const noOtherSource = 'no seal/entropy augmentation available, using platform entropy source';
const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
