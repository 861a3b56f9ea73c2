/** A hash: what OpenSSL calls it, and how long its digests are. */
export interface Hash {
  readonly openssl: string;
  readonly digestBytes: number;
}

/** By the names that callers use (FIPS 180-4, FIPS 202). */
const hashes: ReadonlyMap<string, Hash> = new Map([
  ['sha2-224', { openssl: 'sha224', digestBytes: 28 }],
  ['sha2-256', { openssl: 'sha256', digestBytes: 32 }],
  ['sha2-384', { openssl: 'sha384', digestBytes: 48 }],
  ['sha2-512', { openssl: 'sha512', digestBytes: 64 }],
  ['sha3-224', { openssl: 'sha3-224', digestBytes: 28 }],
  ['sha3-256', { openssl: 'sha3-256', digestBytes: 32 }],
  ['sha3-384', { openssl: 'sha3-384', digestBytes: 48 }],
  ['sha3-512', { openssl: 'sha3-512', digestBytes: 64 }],
]);

/** Names of the hashes that are offered for everything; SHA-1 is offered beside them for HMACs and old signatures. */
export const hashNames: readonly string[] = [...hashes.keys()];

const sha1: Hash = { openssl: 'sha1', digestBytes: 20 };

export const defaultHash = 'sha2-256';

/** The name that stands for no hash: the input is signed as it is. */
export const noHash = 'none';

/** OpenSSL's name of a hash; undefined for one that is not offered. Case counts. */
export const hashAlgorithm = (name: string): string | undefined => hashes.get(name)?.openssl;

/** The same for HMAC, where SHA-1 is still offered: no collision of it breaks an HMAC. */
export const hmacAlgorithm = (name: string): string | undefined => signatureHash(name)?.openssl;

/** A hash for signatures, where SHA-1 is offered for what was signed long ago; undefined for any other name, `none` included. */
export const signatureHash = (name: string): Hash | undefined => (name === 'sha1' ? sha1 : hashes.get(name));

/**
 * Whether that many bytes can be a digest where the named hash need not be the one that made it. SHA-1 has to be named: whoever may not use it
 * could sign its digests under another name.
 */
export const isDigestLength = (name: string, bytes: number): boolean =>
  name === 'sha1' ? bytes === sha1.digestBytes : digestLengths.has(bytes);

const digestLengths: ReadonlySet<number> = new Set([...hashes.values()].map(({ digestBytes }) => digestBytes));
