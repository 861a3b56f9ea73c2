import { createHmac, randomInt } from 'node:crypto';

/** Longer token strings are not looked at. */
export const tokenLengthMax = 1024;

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomCharacters = 24;

/** 24 characters, each one of 62 with the same chance: 142 bits. */
const randomText = (): string => Array.from({ length: randomCharacters }, () => alphabet[randomInt(alphabet.length)]).join('');

/** `s.` and 24 random characters. */
export const newToken = (): string => `s.${randomText()}`;

export const newAccessor = randomText;

/** Whether it can be a token, or an accessor, at all: 1 to 1,024 characters, none of them a control character. */
export const isTokenShaped = (token: string): boolean => token !== '' && token.length <= tokenLengthMax && !/\p{Cc}/u.test(token);

/** HMAC-SHA256 of a token in hex: what stands for it on disk, so that no path and no value tells anything of it. */
export const tokenIdOf = (key: Uint8Array, token: string): string =>
  createHmac('sha256', key).update(token, 'utf8').digest('hex');

/** The same for a secret id and its accessor, and for a role id: other texts than any token. */
export const loginIdOf = (key: Uint8Array, kind: 'role-id' | 'secret-id' | 'secret-accessor', text: string): string =>
  tokenIdOf(key, `${kind}\0${text}`);

/** The same for an accessor. No token holds a control character, so none has the hash of an accessor. */
export const accessorIdOf = (key: Uint8Array, accessor: string): string => tokenIdOf(key, `accessor\0${accessor}`);
