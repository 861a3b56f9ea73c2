/** No name that this program knows is longer; tokens, keys and their encodings are. */
const nameCharsMax = 24;

/**
 * What stood where a name of a thing is expected, of an algorithm or a format: repeated in an error text only as long as it could be one.
 * What a caller has put there by mistake may be a secret.
 */
export const shownName = (text: string): string => (text.length <= nameCharsMax && /^[\w.-]*$/.test(text) ? text : hidden);

const hidden = '(a value that is no name, and not repeated here)';

/** The same where a path is expected, of a mount or a file: each part of it is as long as a name at most. */
export const shownPath = (text: string): string => (/^(?:[\w.@:+-]{0,24}\/){0,8}[\w.@:+-]{0,24}$/.test(text) ? text : hidden);
