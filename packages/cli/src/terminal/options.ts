import { type Command, InvalidArgumentError, Option } from 'commander';

/** Options of every command that asks a server. */
export const asksServer = (command: Command): Command =>
  command
    .option('--address <url>', 'address of the server; several, separated by commas, are tried in turn')
    .option('--ca-cert <file>', 'PEM of the authorities to trust, and no others')
    .option('--namespace <name>', 'there is the root namespace only')
    .addOption(formatOption());

export const formatOption = (): Option =>
  new Option('--format <format>', 'how the answer is shown').choices(['table', 'json']).default('table');

/** … that shows an answer of which one field may be wanted. */
export const showsField = (command: Command): Command =>
  asksServer(command).option('--field <name>', 'show this field of the answer alone, without a line end unless at a terminal');

/** … whose answer may be wrapped. */
export const wraps = (command: Command): Command =>
  showsField(command).option(
    '--wrap-ttl <duration>',
    'let the answer wait for one reader, for so long, and show the token for it',
  );

/** Gathers an option that may be given several times. */
export const several = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value];

/** Where the keys of a command are. */
export interface Mounted {
  readonly mount: string;
  readonly field?: string;
}

export const onMount = (command: Command): Command => command.option('--mount <path>', 'where the engine is mounted', 'transit');

export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It has to be a whole number.');
  return Number(text);
}
