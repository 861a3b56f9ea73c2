import { hashNames, signatureHash } from '../algorithms/hash-algorithm.ts';
import { encodeOid } from '../formats/der.ts';

/** Object identifiers of the hashes in a DigestInfo (RFC 8017 §9.2 note 1; NIST CSOR for SHA-3). */
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

/** Content of each identifier, without tag and length, which have several encodings in BER. */
const contents: readonly (readonly [hash: string, content: Buffer])[] = Object.entries(digestInfoOids).map(([hash, oid]) => [
  hash,
  encodeOid(oid).subarray(2),
]);

/**
 * Returns the hashes for which a signature of these bytes, padded without further hashing, could be accepted. A DigestInfo contains the
 * identifier of its hash, in DER or in an encoding that a lenient verifier accepts. Bytes as long as a digest may be a digest of each hash
 * of that length, whatever identifiers they contain.
 */
export function hashesSignedAsIs(input: Uint8Array): readonly string[] {
  const bytes = Buffer.from(input.buffer, input.byteOffset, input.length);
  const named = contents.filter(([, content]) => bytes.includes(content)).map(([hash]) => hash);
  const ofLength = ['sha1', ...hashNames].filter((hash) => signatureHash(hash)?.digestBytes === input.length);
  return [...new Set([...named, ...ofLength])];
}
