// Looks for banned phrases in the English of a file.
import { bannedPhrases, bannedStarts, type PhraseException, phraseExceptions } from './banned-phrases.ts';
import type { Finding, SourceFile } from './source-files.ts';
import { lineAt, type Text, textsOf, withoutCode } from './texts.ts';

/** Returns each banned phrase of a file that no exception covers. */
export function phraseFindings(file: SourceFile, exceptions: readonly PhraseException[] = phraseExceptions): Finding[] {
  const here = exceptions.filter(({ path }) => (path.endsWith('/') ? file.path.startsWith(path) : file.path === path));
  if (here.some(({ text }) => text === undefined)) return [];
  return textsOf(file).flatMap((text) =>
    phrasesOf(text)
      .filter(({ sentence }) => !here.some((exception) => sentence.includes(exception.text ?? '')))
      .map(({ index, found, write }) => ({
        rule: 'phrase',
        path: file.path,
        line: lineAt(text, index),
        message: `"${found}": write ${write}`,
      })),
  );
}

interface Phrase {
  /** Offset of the phrase in the text. */
  readonly index: number;
  readonly found: string;
  readonly write: string;
  /** The sentence that contains the phrase, for exceptions. */
  readonly sentence: string;
}

/** Returns the banned phrases of one text. A literal without a space is a name or a key, not English. */
export function phrasesOf(text: Text): Phrase[] {
  if (text.kind === 'string' && !/\S\s+\S/.test(text.text)) return [];
  const english = withoutCode(text.text).replaceAll('\n', ' ').replaceAll('\\n', '  ');
  const flat = text.text.replaceAll('\n', ' ');
  const sentences = sentencesOf(english);
  const around = (index: number): string => {
    const sentence = sentences.findLast(({ start }) => start <= index);
    return flat.slice(sentence?.start ?? 0, sentence?.end);
  };
  const phrases = bannedPhrases.flatMap(({ pattern, write }) =>
    [...english.matchAll(new RegExp(pattern, `${pattern.flags}g`))].map(({ index, 0: found }) => ({
      index,
      found,
      write,
      sentence: around(index),
    })),
  );
  const starts = sentences.flatMap(({ start, end, isFirst }) => {
    const sentence = english.slice(start, end).trimEnd();
    if (sentence.endsWith('?') || text.kind === 'heading' || text.kind === 'cell') return [];
    // A lower-case letter begins a sentence only at the start of a comment.
    if (/^[a-z]/.test(sentence) && !(isFirst && text.kind === 'comment')) return [];
    return bannedStarts
      .filter(({ pattern }) => pattern.test(sentence))
      .map(({ write }) => ({ index: start, found: sentence.split(/\s+/).slice(0, 4).join(' '), write, sentence: around(start) }));
  });
  return [...phrases, ...starts].sort((a, b) => a.index - b.index);
}

/** Returns where the sentences of `text` start and end. A capital letter must follow an end, so `e.g.` does not end a sentence. */
export function sentencesOf(text: string): { start: number; end: number; isFirst: boolean }[] {
  const sentences: { start: number; end: number; isFirst: boolean }[] = [];
  let start = text.length - text.trimStart().length;
  for (const { index, 0: gap } of text.matchAll(
    /(?<=[.!?][)"”*]?)\s+(?=["“(*]?[A-Z\u00b7`@])|\s+(?=@(?:param|returns|throws|see)\b)/g,
  )) {
    if (index <= start) continue;
    sentences.push({ start, end: index, isFirst: sentences.length === 0 });
    start = index + gap.length;
  }
  if (start < text.length) sentences.push({ start, end: text.length, isFirst: sentences.length === 0 });
  return sentences;
}
