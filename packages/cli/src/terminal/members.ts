import { StartError } from '@transitd/process';
import { plainSecretError, type Sources } from './input.ts';

/** Members that are secrets everywhere in the API: credentials, shares, and backups, which contain plaintext keys. */
const secretNames: ReadonlySet<string> = new Set([
  ...['backup', 'jwt', 'key', 'otp', 'password', 'pin', 'secret_id', 'token', 'token_reviewer_jwt'],
]);

/**
 * Builds a request body from arguments: `name=value`, `name=@file`, `name=-` (standard input), `name=\@text` for a text that starts
 * with `@`; a repeated name makes a list. `-` is a JSON object from standard input, `@file` one from a file; members may follow both.
 * A secret member must come from standard input or a file.
 * @throws StartError, which names the position of the mistake but never repeats the value
 */
export async function membersOf(args: readonly string[], sources: Sources): Promise<Readonly<Record<string, unknown>>> {
  const members = new Map<string, unknown>();
  for (const [at, argument] of args.entries()) {
    const split = argument.indexOf('=');
    if (argument === '-' || (argument.startsWith('@') && split < 0)) {
      for (const [name, value] of Object.entries(
        objectFrom(await textOf(argument, sources), argument === '-' ? 'standard input' : argument.slice(1)),
      ))
        members.set(name, value);
      continue;
    }
    if (split <= 0) throw new StartError(`data argument ${at + 1} is not of the form name=value`);
    const name = argument.slice(0, split);
    const text = argument.slice(split + 1);
    if (secretNames.has(name) && text !== '-' && !text.startsWith('@'))
      throw plainSecretError(name, `${name}=-`, `${name}=@FILE`);
    const value = await textOf(text, sources);
    members.set(name, members.has(name) ? [members.get(name), value].flat() : value);
  }
  return Object.fromEntries(members);
}

/** Keeps the final newline: it may be part of the value. */
async function textOf(value: string, { stdin, file }: Sources): Promise<string> {
  if (value === '-') return (await stdin()).toString('utf8');
  if (value.startsWith('@')) return file(value.slice(1)).toString('utf8');
  return value.startsWith('\\@') ? value.slice(1) : value;
}

/** @param source - the file, for errors */
function objectFrom(text: string, source: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const [line, column] = positionOf(text, mistakeIn(text));
    throw new StartError(`${source}:${line}:${column}: the data is not JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new StartError(`${source}: the data is not a JSON object`);
  return value;
}

/**
 * Returns the index of the first character that makes a text invalid JSON. The parser's error does not always have the index, and quotes
 * the text, which may be a secret. So this function searches for the longest beginning whose only mistake is that it ends.
 */
function mistakeIn(text: string): number {
  let [valid, invalid] = [0, text.length + 1];
  while (invalid - valid > 1) {
    const middle = Math.floor((valid + invalid) / 2);
    if (mayContinue(text.slice(0, middle))) valid = middle;
    else invalid = middle;
  }
  return valid;
}

/** Matches the index at the end of an error's message. */
const indexInMessage = / at position (\d+)(?: \(line \d+ column \d+\))?$/;

/** Returns whether a text is JSON or the beginning of JSON. */
function mayContinue(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const { message } = error as SyntaxError;
    return message === 'Unexpected end of JSON input' || Number(indexInMessage.exec(message)?.[1]) === text.length;
  }
}

/** Returns the line and the column of an index, from 1. */
function positionOf(text: string, index: number): readonly [line: number, column: number] {
  const lines = text.slice(0, index).split('\n');
  return [lines.length, (lines.at(-1) ?? '').length + 1];
}

/** Parses the pairs of a repeatable option, such as `owner=me`. @throws StartError */
export function pairsOf(option: string, pairs: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const split = pair.indexOf('=');
      if (split <= 0) throw new StartError(`${option} takes pairs of the form name=value`);
      return [pair.slice(0, split), pair.slice(split + 1)];
    }),
  );
}
