import { base64, int, object, string, text } from '@transitd/http';
import { defaultHash, hashNames, randomBytesMax, randomSources } from '@transitd/transit-engine';
import type { Params } from '../operation/operation.ts';

/** Fields of `random` in a mount and in `sys/tools`, except the byte count in the path, which the two read differently. */
export const randomFields = {
  source: text('Source of the random bytes: this machine, the seal, or both combined; a seal gives at most 1024 bytes', {
    oneOf: randomSources,
    default: 'platform',
  }),
  bytes: int('Number of random bytes, if the path does not contain it', { default: 32, min: 1, max: randomBytesMax }),
  format: text('Encoding of the bytes', { oneOf: ['hex', 'base64'], default: 'base64' }),
};
export const randomResult = object({ random_bytes: string });

/** Returns the fields in the path. A single segment is a source if it is the name of a source, otherwise a byte count. */
export function randomPath({ source, urlbytes }: Params): Readonly<Record<string, string>> {
  if (source === undefined) return {};
  if (urlbytes !== undefined) return { source, urlbytes };
  return randomSources.includes(source) ? { source } : { urlbytes: source };
}

/** Returns the sources whose denial refuses a request: `all` draws from the seal too. A denial of this machine's bytes alone does not. */
export const sourcesUsed = (source: string): readonly string[] => (source === 'all' ? [source, 'seal'] : [source]);

/** Fields of `hash` in a mount and in `sys/tools`. */
export const hashFields = {
  urlalgorithm: text('Hash algorithm', { oneOf: hashNames, aliasOf: 'algorithm' }),
  algorithm: text('Hash algorithm, if the path does not contain it', { oneOf: hashNames, default: defaultHash }),
  input: base64('Data to hash', { required: true }),
  format: text('Encoding of the hash', { oneOf: ['hex', 'base64'], default: 'hex' }),
};
export const hashResult = object({ sum: string });
