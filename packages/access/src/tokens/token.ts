import { createHmac, createSecretKey, randomInt } from 'node:crypto';

/** Maximum length of a service token; longer strings are refused without a lookup. */
export const tokenLengthMax = 1024;

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomCharacters = 24;

/** Returns 24 uniformly random characters out of 62: 142 bits. */
const randomText = (): string => Array.from({ length: randomCharacters }, () => alphabet[randomInt(alphabet.length)]).join('');

/** Returns a new service token: `s.` and 24 random characters. */
export const newToken = (): string => `s.${randomText()}`;

export const newAccessor = randomText;

/** Returns whether a string can be a token or an accessor: 1 to 1,024 characters without control characters. */
export const isTokenShaped = (token: string): boolean => token !== '' && token.length <= tokenLengthMax && !/\p{Cc}/u.test(token);

/**
 * Returns the id of a token: its HMAC-SHA256 in hex. Paths and values on disk contain the id, which reveals nothing about the
 * token. The key becomes a key object first: for a key in a buffer, Node 24 throws and catches errors, which takes five times as long.
 */
export const tokenIdOf = (key: Uint8Array, token: string): string =>
  createHmac('sha256', createSecretKey(key)).update(token, 'utf8').digest('hex');

/** Returns the keyed hash of a role id, a secret id or its accessor. The prefix keeps it distinct from the id of any token. */
export const loginIdOf = (key: Uint8Array, kind: 'role-id' | 'secret-id' | 'secret-accessor', text: string): string =>
  tokenIdOf(key, `${kind}\0${text}`);

/** Returns the keyed hash of an accessor. Tokens have no control characters, so no token has the same hash. */
export const accessorIdOf = (key: Uint8Array, accessor: string): string => tokenIdOf(key, `accessor\0${accessor}`);
