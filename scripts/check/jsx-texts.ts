// Finds the text between the tags of TSX.
import type { CodeText } from './code-texts.ts';

/** Code between brackets: operators, calls, and statements that begin there. */
const operator = /[;=]|&&|\|\||\?\?|\w\(|\)\s*:|^\s*[,)\].:?]/;
const statement = /^\s*(?:export|import|const|type|interface|function|return|else|catch|finally|from|as|extends)\b/;

/**
 * Returns the text between two tags, or between a tag and an expression. Types and comparisons have angle brackets too, but no two words
 * side by side between them.
 */
export function jsxTextsOf(source: string): CodeText[] {
  return [...source.matchAll(/(?<=(?<!=)>|\})[^<>{}]+(?=[<{])/g)].flatMap(({ index, 0: text }) => {
    if (!/\p{L} +\p{L}/u.test(text) || operator.test(text) || statement.test(text)) return [];
    const start = index + text.length - text.trimStart().length;
    return [{ kind: 'string' as const, line: source.slice(0, start).split('\n').length, text: text.trim() }];
  });
}
