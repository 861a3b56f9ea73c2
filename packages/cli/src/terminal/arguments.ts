import type { Command } from 'commander';

/** Matches a long option with one dash, as users of Vault write it: `-key-shares=5`. One letter after one dash is a short option. */
const longWithOneDash = /^-(?=[a-z][a-z-])/i;
const withValue = /^(--[a-z][a-z-]*)=(.*)$/is;
const [yes, no] = [new Set(['', 'true', 't', '1']), new Set(['false', 'f', '0'])];

/**
 * Returns the arguments with two dashes before every long option, and without values on flags: `-force=true` becomes `--force`,
 * `-force=false` is dropped. Arguments after `--` are unchanged.
 * @param flags - long options without a value, such as `--force`
 */
export function normalizeArguments(argv: readonly string[], flags: ReadonlySet<string>): readonly string[] {
  const end = argv.indexOf('--');
  const [options, rest] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end)];
  const long = options.map((argument) => argument.replace(longWithOneDash, '--'));
  const plain = long.flatMap((argument) => {
    const [, name = '', value = ''] = withValue.exec(argument) ?? [];
    if (!flags.has(name)) return [argument];
    if (yes.has(value.toLowerCase())) return [name];
    return no.has(value.toLowerCase()) ? [] : [argument];
  });
  return [...plain, ...rest];
}

/**
 * Returns the arguments with the word `help` as an option of the command that follows: `help key encrypt` becomes `key encrypt --help`.
 * Words that name no command stay, so that the parser reports them.
 */
export function helpAsOption(argv: readonly string[], program: Command): readonly string[] {
  const named = (group: Command, name: string | undefined): Command | undefined =>
    group.commands.find((command) => command.name() === name);
  let group = program;
  let at = 0;
  for (let next = named(group, argv[at]); next !== undefined; next = named(group, argv[at])) [group, at] = [next, at + 1];
  if (argv[at] !== 'help' || group.commands.length === 0) return argv;
  const [before, after] = [argv.slice(0, at), argv.slice(at + 1)];
  let found: Command | undefined = group;
  for (const name of after) if (found !== undefined && found.commands.length > 0) found = named(found, name);
  return [...before, ...after, ...(found === undefined ? [] : ['--help'])];
}

/** Redacts service and batch tokens in a path. */
export const redactTokens = (path: string): string => path.replace(/(?<=^|[/ ])(?:hv[sbr]|[sbr])\.[^/]{20,}/g, '…');

/** Redacts argument values in an error text: they may be secrets, and errors end up in logs. A possibly misspelled command name stays. */
export const redactValues = (text: string): string =>
  text
    .replace(/'(--?[\w-]+)=[^\n]*?'(?=\s|$|\.)/g, "'$1=…'")
    .replace(/ argument '[^\n]*' is invalid/g, ' has an invalid argument')
    .replace(/argument value '[^\n]*' is invalid for/g, 'a value is invalid for')
    .replace(/(unknown command) '(?![a-z-]{1,24}')[^\n]*'/g, '$1')
    .replace(/(too many arguments[^\n]*? but got \d+)[^\n]*/g, '$1.');
