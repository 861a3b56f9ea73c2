/** Hashes by the names that callers use, and what OpenSSL calls them. */
const names: ReadonlyMap<string, string> = new Map([
  ['sha2-224', 'sha224'],
  ['sha2-256', 'sha256'],
  ['sha2-384', 'sha384'],
  ['sha2-512', 'sha512'],
  ['sha3-224', 'sha3-224'],
  ['sha3-256', 'sha3-256'],
  ['sha3-384', 'sha3-384'],
  ['sha3-512', 'sha3-512'],
]);

export const defaultHash = 'sha2-256';

/** OpenSSL's name of a hash (FIPS 180-4, FIPS 202); undefined for one that is not offered. Case counts. */
export const hashAlgorithm = (name: string): string | undefined => names.get(name);

/** The same for HMAC, where SHA-1 is still offered: no collision of it breaks an HMAC. */
export const hmacAlgorithm = (name: string): string | undefined => (name === 'sha1' ? name : names.get(name));
