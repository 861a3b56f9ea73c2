/** All valid names are shorter; tokens, keys and their encodings are longer. */
const nameCharsMax = 24;

/**
 * Returns an invalid name, for example of an algorithm or a format, for use in an error text, if it could be a name. Other texts are
 * replaced, because a caller may have sent a secret in the wrong place.
 */
export const shownName = (text: string): string => (text.length <= nameCharsMax && /^[\w.-]*$/.test(text) ? text : hidden);

const hidden = '(a value that is no name, and not repeated here)';

/** The same for the path of a mount or a file. Each segment is at most as long as a name. */
export const shownPath = (text: string): string => (/^(?:[\w.@:+-]{0,24}\/){0,8}[\w.@:+-]{0,24}$/.test(text) ? text : hidden);
