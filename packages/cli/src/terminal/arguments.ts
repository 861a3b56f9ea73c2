/** `-key-shares=5`, as users of other command lines write it. One letter after one dash is an option of its own. */
const longWithOneDash = /^-(?=[a-z][a-z-])/i;
const valued = /^(--[a-z][a-z-]*)=(.*)$/is;
const [yes, no] = [new Set(['', 'true', 't', '1']), new Set(['false', 'f', '0'])];

/**
 * The arguments with two dashes before every long option, and without a value on those that take none: `-force=true` is `--force`,
 * `-force=false` is nothing. What follows `--` stays as it is.
 * @param flags - long options without a value, such as `--force`
 */
export function normalised(argv: readonly string[], flags: ReadonlySet<string>): readonly string[] {
  const end = argv.indexOf('--');
  const [options, rest] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end)];
  const long = options.map((argument) => argument.replace(longWithOneDash, '--'));
  const plain = long.flatMap((argument) => {
    const [, name = '', value = ''] = valued.exec(argument) ?? [];
    if (!flags.has(name)) return [argument];
    if (yes.has(value.toLowerCase())) return [name];
    return no.has(value.toLowerCase()) ? [] : [argument];
  });
  return [...plain, ...rest];
}

/** A complaint about an argument, without what was given: it may be a secret, and errors end up in logs. A word that may be a misspelt command stays. */
export const withoutValues = (text: string): string =>
  text
    .replace(/'(--?[\w-]+)=[^\n]*?'(?=\s|$|\.)/g, "'$1=…'")
    .replace(/ argument '[^\n]*' is invalid/g, ' has an argument that is not valid')
    .replace(/argument value '[^\n]*' is invalid for/g, 'a value is not valid for')
    .replace(/(unknown command) '(?![a-z-]{1,24}')[^\n]*'/g, '$1')
    .replace(/(too many arguments[^\n]*? but got \d+)[^\n]*/g, '$1.');
