// Finds the comments and the string literals of TypeScript and JavaScript, and of Go and C where their syntax is the same. TypeScript 7 has
// no API for this. This scanner recognizes comments, strings, templates and regular expressions, and nothing else of the language.

/** A comment or a literal. `line` counts from 1; line breaks inside `text` are kept, so that the line of any character is known. */
export interface CodeText {
  readonly kind: 'comment' | 'string';
  readonly line: number;
  readonly text: string;
}

const token =
  /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"|[\p{L}_$][\p{L}\p{N}_$]*|\d[\w.]*|[\s\S]/uy;
const regularExpression = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
/** Words after which a slash begins a regular expression, though they look like a name. */
const beforeExpression = /^(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/;

/** Returns the comments and string literals of `source`, in order. Consecutive line comments are one text. */
export function codeTextsOf(source: string): CodeText[] {
  const found: (CodeText & { readonly start: number; readonly end: number })[] = [];
  let at = 0;
  let line = 1;
  let previous = '';

  const pass = (text: string): void => {
    at += text.length;
    for (const char of text) if (char === '\n') line += 1;
  };

  /** Scans a template. Its text has an ellipsis for each expression; literals inside an expression are texts of their own. */
  const template = (): void => {
    const start = at;
    const firstLine = line;
    let text = '';
    pass('`');
    while (at < source.length && source[at] !== '`') {
      if (source[at] === '\\') {
        text += source.slice(at, at + 2);
        pass(source.slice(at, at + 2));
      } else if (source.startsWith('${', at)) {
        text += '…';
        const before = line;
        pass('${');
        code('}');
        text += '\n'.repeat(line - before);
      } else {
        text += source[at];
        pass(source[at] ?? '');
      }
    }
    pass('`');
    found.push({ kind: 'string', line: firstLine, text, start, end: at });
  };

  const code = (until: string | undefined): void => {
    let depth = 0;
    while (at < source.length) {
      if (source[at] === '`') {
        template();
        previous = '`';
        continue;
      }
      token.lastIndex = at;
      let text = token.exec(source)?.[0] ?? source[at] ?? '';
      if (text === '/' && !/[\w\p{L}$)\]}`'"]$/u.test(previous.replace(beforeExpression, ''))) {
        regularExpression.lastIndex = at;
        text = regularExpression.exec(source)?.[0] ?? text;
      }
      const start = at;
      const firstLine = line;
      pass(text);
      if (text.startsWith('//') || text.startsWith('/*')) {
        found.push({ kind: 'comment', line: firstLine, text: bare(text), start, end: at });
        continue;
      }
      if (/^\s/.test(text)) continue;
      if (text.length > 1 && (text[0] === "'" || text[0] === '"'))
        found.push({ kind: 'string', line: firstLine, text: text.slice(1, -1), start, end: at });
      if (text === '{') depth += 1;
      if (text === '}') {
        if (depth === 0 && until === '}') return;
        depth -= 1;
      }
      previous = text;
    }
  };
  code(undefined);

  const texts: (CodeText & { readonly end: number; readonly isLine: boolean })[] = [];
  for (const { start, end, kind, line, text } of found.sort((a, b) => a.start - b.start)) {
    const isLine = kind === 'comment' && source[start + 1] === '/';
    const last = texts.at(-1);
    const follows = isLine && last?.isLine && /^\s*\n[ \t]*$/.test(source.slice(last.end, start)) && startsItsLine(source, last);
    if (follows && !/\n\s*\n/.test(source.slice(last.end, start)))
      texts.splice(-1, 1, { ...last, text: `${last.text}\n${text}`, end });
    else texts.push({ kind, line, text, end, isLine });
  }
  return texts.map(({ kind, line, text }) => ({ kind, line, text }));
}

/** A comment after code on the same line is a separate text. */
function startsItsLine(source: string, { end }: { readonly end: number }): boolean {
  const begin = source.lastIndexOf('\n', end - 1) + 1;
  return /^\s*\/\//.test(source.slice(begin, end));
}

/** Returns a comment without its slashes and stars, line by line. */
const bare = (comment: string): string =>
  comment.startsWith('//')
    ? comment.slice(2).trim()
    : comment
        .slice(2, -2)
        .split('\n')
        .map((line) => line.replace(/^\s*\*+ ?/, '').trim())
        .join('\n');
