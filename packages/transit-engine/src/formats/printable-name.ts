/** Maximum length of a name in an error text. All valid names are shorter; tokens, keys and their encodings are longer. */
const nameCharsMax = 24;

/**
 * Returns an invalid name, for example of an algorithm or a format, for use in an error text. A string that cannot be a name is replaced,
 * because a caller may have sent a secret in the wrong place.
 */
export const printableName = (text: string): string => (text.length <= nameCharsMax && /^[\w.-]*$/.test(text) ? text : hidden);

const hidden = '(a value that is not a name and is not repeated here)';

/** Returns an invalid path of a mount or a file, for use in an error text. Each segment must be no longer than a name. */
export const printablePath = (text: string): string => (/^(?:[\w.@:+-]{0,24}\/){0,8}[\w.@:+-]{0,24}$/.test(text) ? text : hidden);
