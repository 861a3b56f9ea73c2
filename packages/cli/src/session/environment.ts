import { homedir } from 'node:os';
import { join } from 'node:path';

/** Prefixes of the variables, in order of precedence: ours, then those of programs with the same API. */
const prefixes = ['TRANSITD', 'VAULT', 'BAO'] as const;

const variable = (environment: NodeJS.ProcessEnv, name: string): string | undefined =>
  prefixes.map((prefix) => environment[`${prefix}_${name}`]).find((value) => value !== undefined && value !== '');

export const defaultAddress = 'http://127.0.0.1:8200';

/** Connection options of every command that calls a server. */
export interface ConnectionOptions {
  readonly address?: string;
  readonly caCert?: string;
  readonly namespace?: string;
}

export interface ConnectionSettings {
  readonly addresses: readonly string[];
  /** PEM file of the only trusted authorities. */
  readonly caFile: string | undefined;
  readonly namespace: string | undefined;
  /** From the environment. If undefined, the session uses the stored token of the last login. */
  readonly token: string | undefined;
}

/** Returns the settings; options take precedence over the environment. Commas separate several addresses. */
export const connectionSettings = (options: ConnectionOptions, environment: NodeJS.ProcessEnv): ConnectionSettings => ({
  addresses: (options.address ?? variable(environment, 'ADDR') ?? defaultAddress).split(',').map((address) => address.trim()),
  caFile: options.caCert ?? variable(environment, 'CACERT'),
  namespace: options.namespace ?? variable(environment, 'NAMESPACE'),
  token: variable(environment, 'TOKEN'),
});

/** Whether an option or a variable sets the address. */
export const hasAddress = (options: ConnectionOptions, environment: NodeJS.ProcessEnv): boolean =>
  (options.address ?? variable(environment, 'ADDR')) !== undefined;

/** Path of the file in which `login` stores the token. */
export const tokenFile = (environment: NodeJS.ProcessEnv): string => join(environment['HOME'] || homedir(), '.transitd-token');
