/** Whether the whole text is searched for the pattern: the other ones look at one end of it, so a long text costs nothing. */
export const isSought = (pattern: string): boolean => pattern.length > 1 && pattern.startsWith('*') && pattern.endsWith('*');

/**
 * Returns whether the text matches. `*` at either end of the pattern matches any text; anywhere else it is an ordinary character.
 */
export function globMatches(pattern: string, text: string): boolean {
  if (pattern === '*') return true;
  if (isSought(pattern)) return text.includes(pattern.slice(1, -1));
  if (pattern.startsWith('*')) return text.endsWith(pattern.slice(1));
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}

/** Returns whether the text matches. Each `*`, anywhere in the pattern, matches any text. */
export function starsMatch(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}
