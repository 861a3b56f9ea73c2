import { type Command, InvalidArgumentError, Option } from 'commander';

/** Adds the options of every command that calls a server. */
export const serverOptions = (command: Command): Command =>
  command
    .option('--address <url>', 'address of the server; several, separated by commas, are tried in order')
    .option('--ca-cert <file>', 'PEM file of the only authorities to trust')
    .option('--namespace <name>', 'namespace of the requests; only the root namespace exists')
    .addOption(formatOption());

export const formatOption = (): Option =>
  new Option('--format <format>', 'output format').choices(['table', 'json']).default('table');

/** Adds the options of {@link serverOptions} and `--field`. */
export const fieldOption = (command: Command): Command =>
  serverOptions(command).option('--field <name>', 'print only this field of the response, with a newline only on a terminal');

/** Adds the options of {@link fieldOption} and `--wrap-ttl`. */
export const wrapOption = (command: Command): Command =>
  fieldOption(command).option('--wrap-ttl <duration>', 'wrap the response for this long and print the wrapping token');

/** Collects the values of a repeatable option. */
export const collect = (value: string, previous: readonly string[] | undefined): readonly string[] => [
  ...(previous ?? []),
  value,
];

/** Options of commands on keys. */
export interface Mounted {
  readonly mount: string;
  readonly field?: string;
}

export const mountOption = (command: Command): Command =>
  command.option('--mount <path>', 'mount path of the transit engine', 'transit');

export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}
