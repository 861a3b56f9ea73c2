import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where a value may come from, the first that is set: our own variables, else those of programs that ask the same interface. */
const prefixes = ['TRANSITD', 'VAULT', 'BAO'] as const;

const variable = (environment: NodeJS.ProcessEnv, name: string): string | undefined =>
  prefixes.map((prefix) => environment[`${prefix}_${name}`]).find((value) => value !== undefined && value !== '');

export const defaultAddress = 'http://127.0.0.1:8200';

/** What every command that asks a server takes. */
export interface ConnectionOptions {
  readonly address?: string;
  readonly caCert?: string;
  readonly namespace?: string;
}

export interface ConnectionSettings {
  readonly addresses: readonly string[];
  /** PEM: these authorities are trusted and no others. */
  readonly caFile: string | undefined;
  readonly namespace: string | undefined;
  /** From the environment; else the one that the last login kept. */
  readonly token: string | undefined;
}

/** Options go before the environment. Several addresses are separated by commas. */
export const connectionSettings = (options: ConnectionOptions, environment: NodeJS.ProcessEnv): ConnectionSettings => ({
  addresses: (options.address ?? variable(environment, 'ADDR') ?? defaultAddress).split(',').map((address) => address.trim()),
  caFile: options.caCert ?? variable(environment, 'CACERT'),
  namespace: options.namespace ?? variable(environment, 'NAMESPACE'),
  token: variable(environment, 'TOKEN'),
});

/** Whether the caller has named a server, rather than left it to the default. */
export const namesServer = (options: ConnectionOptions, environment: NodeJS.ProcessEnv): boolean =>
  (options.address ?? variable(environment, 'ADDR')) !== undefined;

/** Where `login` keeps a token. */
export const tokenFile = (environment: NodeJS.ProcessEnv): string => join(environment['HOME'] || homedir(), '.transitd-token');
