import { randomInt } from 'node:crypto';

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
