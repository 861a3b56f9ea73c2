import { StartError } from '@transitd/process';
import { exposed, type Sources } from './input.ts';

/** Members that are secrets wherever the API has them: credentials, shares, and backups, which hold keys in clear. */
const secretNames: ReadonlySet<string> = new Set(['backup', 'jwt', 'key', 'otp', 'password', 'pin', 'secret_id', 'token']);

/**
 * The body that arguments stand for: `name=value`, `name=@file`, `name=-` (standard input), `name=\@text` for a text with that sign; a name
 * given several times is a list. `-` is a whole JSON object from standard input, `@file` one from a file; both may be followed by members.
 * A member that is a secret comes from standard input or a file only.
 * @throws StartError, which says where the mistake is, and never what stands there
 */
export async function membersOf(args: readonly string[], sources: Sources): Promise<Readonly<Record<string, unknown>>> {
  const members = new Map<string, unknown>();
  for (const [at, argument] of args.entries()) {
    const split = argument.indexOf('=');
    if (argument === '-' || (argument.startsWith('@') && split < 0)) {
      for (const [name, value] of Object.entries(objectFrom(await textOf(argument, sources)))) members.set(name, value);
      continue;
    }
    if (split <= 0) throw new StartError(`argument ${at + 1} of the data is not of the form name=value`);
    const name = argument.slice(0, split);
    const given = argument.slice(split + 1);
    if (secretNames.has(name) && given !== '-' && !given.startsWith('@')) throw exposed(name, `${name}=-`, `${name}=@FILE`);
    const value = await textOf(given, sources);
    members.set(name, members.has(name) ? [members.get(name), value].flat() : value);
  }
  return Object.fromEntries(members);
}

/** Whole: a file's last line end may belong to it. */
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

/** Pairs such as `owner=me`, for options that are given several times. @throws StartError */
export function pairsOf(option: string, pairs: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const split = pair.indexOf('=');
      if (split <= 0) throw new StartError(`${option} takes pairs of the form name=value`);
      return [pair.slice(0, split), pair.slice(split + 1)];
    }),
  );
}
