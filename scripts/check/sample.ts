// Draws sentences for a reader, who marks those that have to be read twice.
import { createHash } from 'node:crypto';
import { isScalar, parseAllDocuments, visit } from 'yaml';
import { codeTextsOf } from './module.ts';
import type { SourceFile } from './source-files.ts';

export type SentenceKind = 'comment' | 'message' | 'doc' | 'test';
export const sentenceKinds: readonly SentenceKind[] = ['comment', 'message', 'doc', 'test'];

/** A whole comment; a message: a log line, an error or a text of the console; a sentence of the documents; or the name of a test. */
export interface Sentence {
  readonly kind: SentenceKind;
  readonly path: string;
  readonly line: number;
  readonly text: string;
}
type Text = Omit<Sentence, 'path'>;

/** Shorter texts are hardly ever unclear, so they are not drawn. */
const wordsMin = 4;
const compilerHints = /^(?:biome-ignore|@ts-|eslint|cspell|#region|\/ <reference)/;

/** Returns all texts of a file that can be drawn. */
export const sentencesIn = (file: SourceFile): Sentence[] =>
  textsOf(file)
    .map(({ kind, line, text }) => ({ kind, path: file.path, line, text: text.replace(/\s+/g, ' ').trim() }))
    .filter(({ text }) => wordsIn(text) >= wordsMin && !compilerHints.test(text));

const isSource = /^packages\/[^/]+\/(?:src|app)\/.*\.tsx?$/;

function textsOf(file: SourceFile): Text[] {
  const { path, text } = file;
  if (/\.(?:tsx?|mjs)$/.test(path))
    return codeTextsOf(file).flatMap(({ kind, line, text, testName }): Text[] => {
      if (kind === 'comment') return [{ kind, line, text }];
      if (isSource.test(path)) return [{ kind: 'message', line, text }];
      return testName ? [{ kind: 'test', line, text: testName.join(' › ') }] : [];
    });
  if (path.endsWith('.md')) return proseOf(text).flatMap(sentencesOf);
  if (path.endsWith('.json')) return [];
  if (path.endsWith('.tpl'))
    return [...text.matchAll(/\{\{-?\s*\/\*([\s\S]*?)\*\//g)].map(({ index, 1: comment = '' }) => ({
      ...{ kind: 'comment', line: text.slice(0, index).split('\n').length, text: comment },
    }));
  return [...lineCommentsOf(text), ...(/\.ya?ml$/.test(path) ? yamlValuesOf(text) : [])];
}

/** Returns the paragraphs, list items, headings and table cells of Markdown. Fenced blocks are code. */
function proseOf(markdown: string): { readonly line: number; readonly text: string }[] {
  const prose: { line: number; text: string }[] = [];
  let fence: string | undefined;
  let isOpen = false;
  for (const [index, whole] of markdown.split('\n').entries()) {
    const line = index + 1;
    const content = whole.replace(/^[\s>]+/, '');
    const mark = /^(?:```+|~~~+)/.exec(content)?.[0];
    if (fence !== undefined ? mark?.startsWith(fence) : mark !== undefined) fence = fence === undefined ? mark : undefined;
    const [start = ''] = /^(?:#+|[-*+]|\d+\.)\s+/.exec(content) ?? [];
    const last = prose.at(-1);
    if (fence !== undefined || mark !== undefined || content === '' || /^<[^>]*>$/.test(content)) isOpen = false;
    else if (content.startsWith('|')) {
      isOpen = false;
      if (!/^[|\s:-]+$/.test(content)) for (const cell of cellsOf(content)) prose.push({ line, text: cell });
    } else if (isOpen && start === '' && last !== undefined) last.text += `\n${content}`;
    else {
      prose.push({ line, text: content.slice(start.length) });
      isOpen = !start.startsWith('#');
    }
  }
  return prose;
}

const cellsOf = (row: string): string[] =>
  row
    .replace(/\\\||`[^`]*`/g, (code) => code.replaceAll('|', '\u0000'))
    .split('|')
    .map((cell) => cell.replaceAll('\u0000', '|').trim());

/** Returns the sentences of a paragraph. A capital letter must follow an end, so `e.g.` does not end a sentence. */
function sentencesOf({ line, text }: { readonly line: number; readonly text: string }): Text[] {
  let at = 0;
  return withoutCode(text)
    .split(/(?<=[.!?][)"”*]?)\s+(?=["“(*]?[A-Z·`@])/)
    .map((masked) => {
      const start = withoutCode(text).indexOf(masked, at);
      at = start + masked.length;
      return { kind: 'doc', line: line + (text.slice(0, start).match(/\n/g)?.length ?? 0), text: text.slice(start, at) };
    });
}

/** Returns comments that begin with `#` or `//`; consecutive lines are one comment. */
const lineCommentsOf = (text: string): Text[] =>
  [...text.matchAll(/(?:^[ \t]*(?:#(?!!)|\/\/).*(?:\n|$))+|(?<=\S[ \t]+)#[ \t].*$/gm)].map(({ index, 0: comment }) => ({
    ...{ kind: 'comment', line: text.slice(0, index).split('\n').length, text: comment.replace(/^\s*(?:#|\/\/)\s?/gm, '') },
  }));

/** Returns the plain, quoted and folded values of YAML. Literal blocks (`|`) and some keys contain code. */
function yamlValuesOf(yaml: string): Text[] {
  const values: Text[] = [];
  for (const document of parseAllDocuments(yaml))
    visit(document, {
      Pair: (_, { key }) => (isScalar(key) && /^(?:expr|run|command)$/.test(String(key.value)) ? visit.SKIP : undefined),
      Scalar: (key, { value, type, range }) => {
        if (key === 'key' || typeof value !== 'string' || type === 'BLOCK_LITERAL') return;
        const line = yaml.slice(0, range?.[0]).split('\n').length + (type === 'BLOCK_FOLDED' ? 1 : 0);
        values.push({ kind: 'message', line, text: value });
      },
    });
  return values;
}

/** Returns `text` with a dot for each character of code, links and addresses, so that only the English is left. */
const withoutCode = (text: string): string =>
  text.replace(/`[^`]*`|\{@link [^}]*\}|https?:\/\/[^\s)>]+|(?<=\])\([^)\s]*\)/g, (code) => code.replace(/\S/g, '·'));

const wordsIn = (text: string): number => withoutCode(text).match(/(?<![\w/.-])[A-Za-z’']{2,}(?![\w/-])/g)?.length ?? 0;

/**
 * Returns `size` sentences in the order of their files, the same number of each kind while there are enough. The draw ranks sentences by a
 * hash of seed and text, not by their place: the samples of two states of the repository differ only by the sentences that changed.
 */
export function draw(
  sentences: readonly Sentence[],
  {
    seed,
    size,
    kinds = sentenceKinds,
  }: { readonly seed: number; readonly size: number; readonly kinds?: readonly SentenceKind[] },
): Sentence[] {
  const byKind = kinds.map((kind) => {
    const distinct = new Map(sentences.filter((each) => each.kind === kind).map((each) => [each.text, each]));
    return [...distinct.values()]
      .map((each) => ({ each, rank: rankOf(each.text, seed) }))
      .sort((a, b) => (a.rank < b.rank ? -1 : 1));
  });
  const drawn: Sentence[] = [];
  for (let round = 0; drawn.length < size && byKind.some(({ length }) => length > round); round++)
    for (const ranked of byKind) {
      const next = ranked[round];
      if (next !== undefined && drawn.length < size) drawn.push(next.each);
    }
  return drawn.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line));
}

const rankOf = (text: string, seed: number): string => createHash('sha256').update(`${seed}\0${text}`).digest('hex');
