import { type Command, InvalidArgumentError, Option } from 'commander';

/** Returns an option that a variable of the environment sets as well. */
const optionWith = (variable: string, flags: string, text: string): Option => new Option(flags, `${text} (env: ${variable})`);

/** Adds the options of a connection to a server. */
export const connectionOptions = (command: Command): Command =>
  command
    .addOption(
      optionWith('TRANSITD_ADDR', '--address <url>', 'address of the server; several, separated by commas, are tried in order'),
    )
    .addOption(optionWith('TRANSITD_CACERT', '--ca-cert <file>', 'PEM file of the only authorities to trust'))
    .addOption(optionWith('TRANSITD_CAPATH', '--ca-path <folder>', 'folder with PEM files of the only authorities to trust'))
    .addOption(
      optionWith('TRANSITD_CLIENT_CERT', '--client-cert <file>', 'PEM file of the certificate that a server may ask for'),
    )
    .addOption(optionWith('TRANSITD_CLIENT_KEY', '--client-key <file>', 'PEM file of the key of --client-cert'))
    .addOption(optionWith('TRANSITD_TLS_SERVER_NAME', '--tls-server-name <name>', "name to expect in the server's certificate"))
    .addOption(
      optionWith('TRANSITD_SKIP_VERIFY', '--tls-skip-verify', 'accept any certificate of the server; not for production'),
    );

/** Adds the options of every command that calls a server with a token. */
export const serverOptions = (command: Command): Command =>
  connectionOptions(command)
    .addOption(
      optionWith('TRANSITD_NAMESPACE', '--namespace <name>', 'namespace of the requests; only the root namespace exists'),
    )
    .addOption(formatOption())
    .addHelpText('after', '\nTRANSITD_TOKEN sets the token. VAULT_… and BAO_… are read if a TRANSITD_… variable is not set.');

export const formatOption = (): Option =>
  optionWith('TRANSITD_FORMAT', '--format <format>', 'output format (default: table)').choices(['table', 'json']);

/** Adds the options of {@link serverOptions} and `--field`. */
export const fieldOption = (command: Command): Command =>
  serverOptions(command).option('--field <name>', 'print only this field of the response, with a newline only on a terminal');

/** Adds the options of {@link fieldOption} and `--wrap-ttl`. */
export const wrapOption = (command: Command): Command =>
  fieldOption(command).option('--wrap-ttl <duration>', 'wrap the response for this long and print the wrapping token');

/** Adds the options of commands that list names. */
export const pageOptions = (command: Command): Command =>
  command
    .option('--after <name>', 'list only names after this one')
    .option('--limit <count>', 'list at most this many names (default: all)', wholeNumber);

/** Adds the option of commands that ask on a terminal before they delete something for good. */
export const yesOption = (command: Command): Command => command.option('-y, --yes', 'do not ask for confirmation');

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
