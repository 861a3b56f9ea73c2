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
