/** A hash by OpenSSL's name, and the length of its digests. */
export interface Hash {
  readonly openssl: string;
  readonly digestBytes: number;
}

/** Hashes by the names in the API (FIPS 180-4, FIPS 202). */
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

/** Names of the hashes for all operations. SHA-1 is supported only for HMACs, signatures and OAEP. */
export const hashNames: readonly string[] = [...hashes.keys()];

const sha1: Hash = { openssl: 'sha1', digestBytes: 20 };

export const defaultHash = 'sha2-256';

/** The API's name for signing without a hash: the input is signed unchanged. */
export const noHash = 'none';

/** Returns OpenSSL's name of a hash; undefined for an unsupported one. Case-sensitive. */
export const hashAlgorithm = (name: string): string | undefined => hashes.get(name)?.openssl;

/** Returns OpenSSL's name of a hash for HMAC, which also supports SHA-1: collisions of SHA-1 do not break HMAC. */
export const hmacAlgorithm = (name: string): string | undefined => signatureHash(name)?.openssl;

/** Returns a hash for signatures and OAEP. SHA-1 is supported for old systems. Undefined for any other name, including `none`. */
export const signatureHash = (name: string): Hash | undefined => (name === 'sha1' ? sha1 : hashes.get(name));

/**
 * Whether some hash makes digests of this length; it need not be the named hash. Only for SHA-1 must name and length agree: otherwise a
 * caller whose policy denies SHA-1 could sign SHA-1 digests under another name.
 */
export const isDigestLength = (name: string, bytes: number): boolean =>
  name === 'sha1' ? bytes === sha1.digestBytes : digestLengths.has(bytes);

const digestLengths: ReadonlySet<number> = new Set([...hashes.values()].map(({ digestBytes }) => digestBytes));
