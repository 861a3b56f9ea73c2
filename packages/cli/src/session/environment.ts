import { homedir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import type { Format } from '../terminal/output.ts';

/** Prefixes of the variables, in order of precedence: ours, then those of programs with the same API. */
const prefixes = ['TRANSITD', 'VAULT', 'BAO'] as const;

/** The variables of the client without their prefix. A node ignores them when it reads its configuration. */
export const clientVariables = [
  'ADDR',
  'TOKEN',
  'CACERT',
  'CAPATH',
  'CLIENT_CERT',
  'CLIENT_KEY',
  'TLS_SERVER_NAME',
  'SKIP_VERIFY',
  'NAMESPACE',
  'FORMAT',
] as const;
type ClientVariable = (typeof clientVariables)[number];

interface Variable {
  readonly name: string;
  readonly value: string;
}

const found = (environment: NodeJS.ProcessEnv, suffix: ClientVariable): Variable | undefined =>
  prefixes
    .map((prefix) => ({ name: `${prefix}_${suffix}`, value: environment[`${prefix}_${suffix}`] ?? '' }))
    .find(({ value }) => value !== '');

const variable = (environment: NodeJS.ProcessEnv, suffix: ClientVariable): string | undefined =>
  found(environment, suffix)?.value;

export const defaultAddress = 'http://127.0.0.1:8200';

/** Connection options of every command that calls a server. */
export interface ConnectionOptions {
  readonly address?: string;
  readonly caCert?: string;
  readonly caPath?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly tlsServerName?: string;
  readonly tlsSkipVerify?: true;
  readonly namespace?: string;
}

/** Settings of connections with TLS; the files are PEM. */
export interface TlsSettings {
  /** The only trusted authorities, or the folder that has them. */
  readonly caFile?: string | undefined;
  readonly caPath?: string | undefined;
  /** Certificate and key of the client. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** Name that the certificate of the server must have instead of the host in the address. */
  readonly serverName?: string | undefined;
  /** Whether any certificate of the server is accepted. */
  readonly skipVerify: boolean;
}

export interface ConnectionSettings {
  readonly addresses: readonly string[];
  readonly tls: TlsSettings;
  readonly namespace: string | undefined;
  /** From the environment. If undefined, the session uses the stored token of the last login. */
  readonly token: string | undefined;
}

/**
 * Returns the settings; options take precedence over the environment. Commas separate several addresses.
 * @throws StartError for a variable with an invalid value
 */
export const connectionSettings = (options: ConnectionOptions, environment: NodeJS.ProcessEnv): ConnectionSettings => ({
  addresses: (options.address ?? variable(environment, 'ADDR') ?? defaultAddress).split(',').map((address) => address.trim()),
  tls: {
    ...authoritiesFrom(options, environment),
    certFile: options.clientCert ?? variable(environment, 'CLIENT_CERT'),
    keyFile: options.clientKey ?? variable(environment, 'CLIENT_KEY'),
    serverName: options.tlsServerName ?? variable(environment, 'TLS_SERVER_NAME'),
    skipVerify: options.tlsSkipVerify ?? isSet(found(environment, 'SKIP_VERIFY')),
  },
  namespace: options.namespace ?? variable(environment, 'NAMESPACE'),
  token: variable(environment, 'TOKEN'),
});

/** A file takes precedence over a folder, as in Vault and OpenBao, but an option over a variable. */
function authoritiesFrom(
  { caCert, caPath }: ConnectionOptions,
  environment: NodeJS.ProcessEnv,
): Pick<TlsSettings, 'caFile' | 'caPath'> {
  if (caCert === undefined && caPath !== undefined) return { caPath };
  const caFile = caCert ?? variable(environment, 'CACERT');
  return caFile === undefined ? { caPath: variable(environment, 'CAPATH') } : { caFile };
}

/** The spellings of a boolean that Vault and OpenBao accept. */
const [yes, no] = [/^(?:1|t|true)$/i, /^(?:0|f|false)$/i];

function isSet(variable: Variable | undefined): boolean {
  if (variable === undefined || no.test(variable.value)) return false;
  if (yes.test(variable.value)) return true;
  throw new StartError(`the variable ${variable.name} must be true or false`);
}

/** Returns the format of the output. @throws StartError for a variable with a format that only the peers have */
export function formatOf(option: Format | undefined, environment: NodeJS.ProcessEnv): Format {
  const set = found(environment, 'FORMAT');
  if (option !== undefined || set === undefined) return option ?? 'table';
  if (set.value === 'table' || set.value === 'json') return set.value;
  throw new StartError(`the variable ${set.name} must be table or json: correct it, or use --format`);
}

/** Whether an option or a variable sets the address. */
export const hasAddress = (options: ConnectionOptions, environment: NodeJS.ProcessEnv): boolean =>
  (options.address ?? variable(environment, 'ADDR')) !== undefined;

/** Path of the file in which `login` stores the token. */
export const tokenFile = (environment: NodeJS.ProcessEnv): string => join(environment['HOME'] || homedir(), '.transitd-token');
