import { encodeOid } from './der.ts';
import { hashNames, signatureHash } from './hash-algorithm.ts';

/** Object identifiers of hashes in a DigestInfo (RFC 8017 §9.2 note 1; NIST CSOR for SHA-3). */
export const digestInfoOids: Readonly<Record<string, string>> = {
  sha1: '1.3.14.3.2.26',
  'sha2-256': '2.16.840.1.101.3.4.2.1',
  'sha2-384': '2.16.840.1.101.3.4.2.2',
  'sha2-512': '2.16.840.1.101.3.4.2.3',
  'sha2-224': '2.16.840.1.101.3.4.2.4',
  'sha3-224': '2.16.840.1.101.3.4.2.7',
  'sha3-256': '2.16.840.1.101.3.4.2.8',
  'sha3-384': '2.16.840.1.101.3.4.2.9',
  'sha3-512': '2.16.840.1.101.3.4.2.10',
};

const encodedOids: readonly (readonly [hash: string, encoded: Buffer])[] = Object.entries(digestInfoOids).map(([hash, oid]) => [
  hash,
  encodeOid(oid),
]);

/**
 * The hashes whose signature it would be to pad and sign these bytes as they are: a DigestInfo names its hash, in DER or in a form that a lenient
 * verifier takes for it; bytes without a name can be a digest of each hash of that length.
 */
export function hashesSignedAsIs(input: Uint8Array): readonly string[] {
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.length);
  const named = encodedOids.filter(([, encoded]) => bytes.includes(encoded)).map(([hash]) => hash);
  return named.length > 0 ? named : ['sha1', ...hashNames].filter((hash) => signatureHash(hash)?.digestBytes === input.length);
}
