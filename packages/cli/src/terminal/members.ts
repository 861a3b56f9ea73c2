import { StartError } from '@transitd/process';
import { plainSecretError, type Sources } from './input.ts';

/** Members that are secrets everywhere in the API: credentials, shares, and backups, which contain plaintext keys. */
const secretNames: ReadonlySet<string> = new Set(['backup', 'jwt', 'key', 'otp', 'password', 'pin', 'secret_id', 'token']);

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
      for (const [name, value] of Object.entries(objectFrom(await textOf(argument, sources)))) members.set(name, value);
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

function objectFrom(text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new StartError('the data is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new StartError('the data is not a JSON object');
  return value;
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
