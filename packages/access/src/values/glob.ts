/**
 * Returns whether the text matches. `*` at either end of the pattern matches any text; anywhere else it is an ordinary character.
 */
export function globMatches(pattern: string, text: string): boolean {
  if (pattern === '*') return true;
  const [front, back] = [pattern.startsWith('*'), pattern.length > 1 && pattern.endsWith('*')];
  const core = pattern.slice(front ? 1 : 0, back ? -1 : undefined);
  if (front && back) return text.includes(core);
  if (front) return text.endsWith(core);
  return back ? text.startsWith(core) : text === core;
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
