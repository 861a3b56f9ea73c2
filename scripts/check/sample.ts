// Draws sentences for a reader, who marks those that have to be read twice.
import { createHash } from 'node:crypto';
import { sentencesOf } from './phrases.ts';
import type { SourceFile } from './source-files.ts';
import { lineAt, type Text, textsOf, withoutCode } from './texts.ts';
import { yamlValuesOf } from './yaml-values.ts';

export type SentenceKind = 'comment' | 'message' | 'doc' | 'test';
export const sentenceKinds: readonly SentenceKind[] = ['comment', 'message', 'doc', 'test'];

/** A whole comment; a message: a log line, an error or a text of the console; a sentence of the documents; or the name of a test. */
export interface Sentence {
  readonly kind: SentenceKind;
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** Shorter texts are hardly ever unclear, so they are not drawn. */
const wordsMin = 4;
const compilerHints = /^(?:biome-ignore|@ts-|eslint|#region|\/ <reference)/;

/** Returns all texts of a file that can be drawn. */
export function sentencesIn(file: SourceFile): Sentence[] {
  if (file.path.endsWith('.json')) return [];
  const lines = file.text.split('\n');
  const suites: Suite[] = [];
  const sentences = textsOf(file).flatMap((text): Sentence[] => {
    if (text.kind === 'comment') return compilerHints.test(text.text) ? [] : [whole('comment', file, text)];
    if (text.kind !== 'string') return proseOf(file, text);
    if (isSource.test(file.path)) return [whole('message', file, text)];
    return isTest.test(file.path) && isTestName(lines, text) ? [whole('test', file, inSuites(suites, lines, text))] : [];
  });
  const values = /\.ya?ml$/.test(file.path) ? yamlValuesOf(file.text) : [];
  return [...sentences, ...values.map((text) => whole('message', file, text))].filter(({ text }) => wordsIn(text) >= wordsMin);
}

const isSource = /^packages\/[^/]+\/(?:src|app)\/.*\.tsx?$/;
const isTest = /\.test\.ts$/;

/** Whether a literal is the name of a test or of a suite, given the lines of its file. */
function isTestName(lines: readonly string[], { line, text }: Text): boolean {
  const here = lines[line - 1] ?? '';
  const before = here.slice(0, Math.max(0, here.indexOf(text.split('…', 1)[0]?.slice(0, 12) ?? '') - 1));
  const call = before.trim() === '' ? (lines[line - 2] ?? '') : before;
  return /(?:\b(?:describe|it|live)(?:\.\w+)?\(|\btitle:) *$/.test(call);
}

interface Suite {
  readonly indent: number;
  readonly name: string;
}

/** Returns the name of a test or suite after the names of its suites, as reports show it. `suites` are those that are open above. */
function inSuites(suites: Suite[], lines: readonly string[], { kind, line, text }: Text): Text {
  const indent = lines[line - 1]?.search(/\S/) ?? 0;
  while ((suites.at(-1)?.indent ?? -1) >= indent) suites.pop();
  const path = [...suites.map(({ name }) => name), text].join(' › ');
  if (/\bdescribe\b/.test(lines[line - 1] ?? '')) suites.push({ indent, name: text });
  return { kind, line, text: path };
}

const whole = (kind: SentenceKind, { path }: SourceFile, { line, text }: Text): Sentence => ({
  kind,
  path,
  line,
  text: flat(text),
});

const proseOf = ({ path }: SourceFile, text: Text): Sentence[] =>
  sentencesOf(withoutCode(text.text).replaceAll('\n', ' ')).map(({ start, end }) => ({
    kind: 'doc',
    path,
    line: lineAt(text, start),
    text: flat(text.text.slice(start, end)),
  }));

const flat = (text: string): string => text.replace(/\s+/g, ' ').trim();
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
