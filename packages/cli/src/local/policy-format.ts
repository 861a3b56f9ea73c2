import { AccessError, policyPermits } from '@transitd/access';
import { StartError } from '@transitd/process';

/** A token of HCL: a comment, a string, a mark of punctuation, a word, or a line end. */
interface Token {
  readonly kind: 'comment' | 'mark' | 'value' | 'line end';
  readonly text: string;
}

const tokenPattern = /\/\*[\s\S]*?\*\/|(?:#|\/\/)[^\n]*|"(?:[^"\\\n]|\\.)*"|[{}[\],=]|\n|[^\s{}[\],="#/]+|\//g;

/**
 * Returns a policy in HCL with two spaces for each level, one blank line at most, and one space around `=`. Comments stay. JSON is
 * formatted as JSON.
 * @param source - the file, for errors
 * @throws StartError with line and column of each mistake
 */
export function formatPolicy(text: string, source: string): string {
  checkPolicy(text, source);
  if (/^\s*\{/.test(text)) return `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
  const formatted = layOut([...text.matchAll(tokenPattern)].map(([found]) => tokenOf(found)));
  checkPolicy(formatted, source);
  if (wordsOf(formatted) !== wordsOf(text)) throw new Error('the formatted policy differs from the original');
  return formatted;
}

/** Returns everything that has a meaning, comments included: all but white space between the tokens. */
const wordsOf = (text: string): string =>
  [...text.matchAll(tokenPattern)]
    .map(([found]) => found.trim())
    .filter((found) => found !== '' && found !== ',')
    .join('\n');

function checkPolicy(text: string, source: string): void {
  try {
    policyPermits(text, { path: 'x', capability: 'read', parameters: Object.create(null) }, 0);
  } catch (error) {
    if (error instanceof AccessError) throw new StartError(`${source}: ${error.message}`);
    throw error;
  }
}

function tokenOf(text: string): Token {
  if (text === '\n') return { kind: 'line end', text };
  if (/^(?:#|\/\/|\/\*)/.test(text)) return { kind: 'comment', text: text.trimEnd() };
  return { kind: /^[{}[\],=]$/.test(text) ? 'mark' : 'value', text };
}

function layOut(tokens: readonly Token[]): string {
  const lines: string[] = [];
  let depth = 0;
  for (const line of linesOf(tokens)) {
    const texts = line.map(({ text }) => text);
    const isClosing = /^[}\]]/.test(texts[0] ?? '');
    if (texts.length === 0) {
      // At most one blank line, and none after an opening brace.
      if (lines.length > 0 && lines.at(-1) !== '' && !/[{[]$/.test(lines.at(-1) ?? '')) lines.push('');
      continue;
    }
    if (isClosing && lines.at(-1) === '') lines.pop();
    const closed = texts.findIndex((text) => !/^[}\],]$/.test(text));
    const leading = texts.slice(0, closed < 0 ? texts.length : closed).filter((text) => text !== ',').length;
    lines.push(`${'  '.repeat(Math.max(depth - leading, 0))}${spaced(texts)}`);
    depth += texts.filter((text) => /^[{[]$/.test(text)).length - texts.filter((text) => /^[}\]]$/.test(text)).length;
  }
  if (lines.at(-1) === '') lines.pop();
  return `${lines.join('\n')}\n`;
}

/** Divides tokens into lines: those of the text, and one after each opening and around each closing brace. `{}` stays together. */
function linesOf(tokens: readonly Token[]): readonly (readonly Token[])[] {
  const lines: Token[][] = [[]];
  let isForced = false;
  const breakLine = (): void => {
    if ((lines.at(-1) ?? []).length > 0) lines.push([]);
    isForced = true;
  };
  for (const token of tokens) {
    const line = lines.at(-1) ?? [];
    const last = line.at(-1)?.text ?? (isForced ? lines.at(-2)?.at(-1)?.text : undefined);
    if (token.kind === 'line end') {
      if (!isForced) lines.push([]);
      isForced = false;
    } else if (token.text === '}' && last === '{') {
      lines.pop();
      lines.at(-1)?.push(token);
      lines.push([]);
      isForced = true;
    } else if (token.text === '}') {
      breakLine();
      lines.at(-1)?.push(token);
      breakLine();
    } else if (token.text === ',' && line.length === 0 && isForced && lines.length > 1) {
      lines.at(-2)?.push(token);
    } else {
      line.push(token);
      isForced = false;
      if (token.text === '{' || token.kind === 'comment') breakLine();
    }
  }
  return lines;
}

const spaced = (texts: readonly string[]): string =>
  texts.reduce((line, text) => {
    const isGlued = line === '' || /^[,\]]$/.test(text) || line.endsWith('[') || (text === '}' && line.endsWith('{'));
    return `${line}${isGlued ? '' : ' '}${text}`;
  }, '');
