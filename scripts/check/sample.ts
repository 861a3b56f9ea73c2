// Draws sentences for a reader, who marks those that have to be read twice.
import { createHash } from 'node:crypto';
import { sentencesOf } from './phrases.ts';
import type { SourceFile } from './source-files.ts';
import { lineAt, type Text, textsOf, withoutCode } from './texts.ts';

export type SentenceKind = 'comment' | 'message' | 'doc';
export const sentenceKinds: readonly SentenceKind[] = ['comment', 'message', 'doc'];

/** A whole comment, a log line or error text, or a sentence of the documents. */
export interface Sentence {
  readonly kind: SentenceKind;
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** Shorter texts are hardly ever unclear, so they are not drawn. */
const wordsMin = 4;
const compilerHints = /^(?:biome-ignore|@ts-|eslint|#region|\/ <reference)/;

/** Returns all texts of a file that can be drawn. Messages are string literals with enough words in a package's sources. */
export function sentencesIn(file: SourceFile): Sentence[] {
  if (file.path.endsWith('.json')) return [];
  const texts = textsOf(file);
  const isCode = /\.(?:ts|mjs|js)$/.test(file.path);
  const isSource = /^packages\/[^/]+\/src\//.test(file.path);
  const sentences = texts.flatMap((text): Sentence[] => {
    const whole = (kind: SentenceKind): Sentence[] => [{ kind, path: file.path, line: text.line, text: flat(text.text) }];
    if (text.kind === 'comment') return compilerHints.test(text.text) ? [] : whole('comment');
    if (text.kind === 'string') return isCode && isSource ? whole('message') : [];
    return proseOf(file, text);
  });
  return sentences.filter(({ text }) => wordsIn(text) >= wordsMin);
}

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
