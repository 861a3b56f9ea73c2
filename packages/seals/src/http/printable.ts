const charactersMax = 200;

/** Returns the beginning of a provider's text as one line of printable characters, for the log. */
export const printable = (text: string): string => text.slice(0, charactersMax).replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '?');
