// The English of a file: comments, literals and prose, each with its line.
import { codeTextsOf } from './code-texts.ts';
import { jsxTextsOf } from './jsx-texts.ts';
import type { SourceFile } from './source-files.ts';

/** A piece of English. Line breaks inside `text` are kept; `line` is the line of its first character. */
export interface Text {
  readonly kind: 'comment' | 'string' | 'prose' | 'heading' | 'cell';
  readonly line: number;
  readonly text: string;
}

/** Returns the texts of a file; none for code in it and for file formats without English. */
export function textsOf({ path, text }: SourceFile): Text[] {
  if (/\.(?:ts|mjs|js|go|c)$/.test(path)) return codeTextsOf(text);
  if (path.endsWith('.tsx')) return [...codeTextsOf(text), ...jsxTextsOf(text)].sort((a, b) => a.line - b.line);
  if (path.endsWith('.tpl')) return templateTextsOf(text);
  if (path.endsWith('.md')) return markdownTextsOf(text);
  if (path.endsWith('.json')) return path.startsWith('deploy/') ? jsonTextsOf(text) : [];
  return lineTextsOf(text, { all: /\.ya?ml$/.test(path) });
}

/** Returns paragraphs, list items, headings and table cells. Fenced blocks are code. */
export function markdownTextsOf(markdown: string): Text[] {
  const texts: Text[] = [];
  let paragraph: { line: number; lines: string[] } | undefined;
  let fence: string | undefined;
  const end = (): void => {
    if (paragraph !== undefined) texts.push({ kind: 'prose', line: paragraph.line, text: paragraph.lines.join('\n') });
    paragraph = undefined;
  };
  for (const [index, whole] of markdown.split('\n').entries()) {
    const line = index + 1;
    const content = whole.replace(/^[\s>]+/, '');
    const mark = /^(?:```+|~~~+)/.exec(content)?.[0];
    if (fence !== undefined) {
      if (mark?.startsWith(fence)) fence = undefined;
    } else if (mark !== undefined) {
      end();
      fence = mark;
    } else if (content === '' || /^<[^>]*>$/.test(content)) end();
    else if (content.startsWith('#')) {
      end();
      texts.push({ kind: 'heading', line, text: content.replace(/^#+\s*/, '') });
    } else if (content.startsWith('|')) {
      end();
      if (!/^[|\s:-]+$/.test(content))
        for (const cell of cellsOf(content)) if (cell !== '') texts.push({ kind: 'cell', line, text: cell });
    } else {
      const item = /^(?:[-*+]|\d+\.)\s+/.exec(content)?.[0];
      if (item !== undefined) end();
      paragraph ??= { line, lines: [] };
      paragraph.lines.push(content.slice(item?.length ?? 0));
    }
  }
  end();
  return texts;
}

const cellsOf = (row: string): string[] =>
  row
    .replace(/\\\||`[^`]*`/g, (code) => code.replaceAll('|', '\u0000'))
    .split('|')
    .map((cell) => cell.replaceAll('\u0000', '|').trim());

/** Returns the strings of a JSON document that have more than one word, such as the titles of a dashboard. */
const jsonTextsOf = (json: string): Text[] =>
  json.split('\n').flatMap((line, index) =>
    [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)]
      .map(([, text = '']) => text)
      .filter((text) => text.includes(' '))
      .map((text) => ({ kind: 'string' as const, line: index + 1, text })),
  );

/** Returns the comments of a Helm template. */
const templateTextsOf = (template: string): Text[] =>
  [...template.matchAll(/\{\{-?\s*\/\*([\s\S]*?)\*\//g)].map(({ index, 1: text = '' }) => ({
    kind: 'comment' as const,
    line: template.slice(0, index).split('\n').length,
    text: text.trim(),
  }));

/** Returns the comments that begin with `#`. Of YAML, returns every line, because operators read its values. */
function lineTextsOf(text: string, { all }: { readonly all: boolean }): Text[] {
  const texts: Text[] = [];
  let open = false;
  for (const [index, whole] of text.split('\n').entries()) {
    const comment = /^\s*#(?!!)\s?(.*)$/.exec(whole)?.[1];
    const last = texts.at(-1);
    if (comment === undefined) {
      open = false;
      const rest = all ? whole.trim() : (/\s#\s(.*)$/.exec(whole)?.[1] ?? '');
      if (rest !== '') texts.push({ kind: all ? 'string' : 'comment', line: index + 1, text: rest });
    } else if (open && last !== undefined) texts.splice(-1, 1, { ...last, text: `${last.text}\n${comment}` });
    else {
      open = true;
      texts.push({ kind: 'comment', line: index + 1, text: comment });
    }
  }
  return texts;
}

/** Returns `text` with a dot for each character of code, links and addresses, so that only the English is left. */
export const withoutCode = (text: string): string =>
  text.replace(/`[^`]*`|\{@link [^}]*\}|https?:\/\/[^\s)>]+|(?<=\])\([^)\s]*\)/g, (code) => code.replace(/\S/g, '\u00b7'));

/** Returns the line of the character at `index` of a text. */
export const lineAt = ({ line, text }: Text, index: number): number => line + (text.slice(0, index).match(/\n/g)?.length ?? 0);
