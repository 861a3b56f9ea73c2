import { readFileSync, realpathSync } from 'node:fs';
import { isIP } from 'node:net';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { StartError } from '@transitd/process';
import { parse as parseYaml } from 'yaml';
import type { z } from 'zod';
import { withEnvironment } from './environment.ts';
import { configSchema } from './schema.ts';

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
export type ListenerConfig = Config['listeners'][number];
export type LogConfig = Config['log'];

/**
 * Checks a configuration and returns it typed: every key is known and every value in its range. A setting in `environment` replaces the one
 * in `input`; a section in `fixed` replaces the same section of `input` and of `environment` as a whole.
 * @throws StartError with one sentence that names the key
 */
export function parseConfig(input: unknown, environment: NodeJS.ProcessEnv = {}, fixed: Partial<ConfigInput> = {}): Config {
  const overlaid = withEnvironment(input ?? {}, environment);
  const result = configSchema.safeParse(Object.keys(fixed).length === 0 ? overlaid : { ...(overlaid as object), ...fixed });
  if (!result.success) {
    const issue = result.error.issues[0];
    const where = issue && issue.path.length > 0 ? issue.path.join('.') : 'the document';
    throw new StartError(`configuration: ${where}: ${issue?.message ?? 'is not valid'}`);
  }
  const config = result.data;
  if (config.cluster_addr === undefined && (config.retry_join.length > 0 || config.cluster_listen !== undefined))
    throw new StartError(
      'configuration: cluster_addr: must be set with retry_join or cluster_listen: it is the address that other nodes connect to',
    );
  const large = config.listeners.findIndex(({ max_request_size }) => max_request_size > config.limits.body_memory);
  if (large >= 0)
    throw new StartError(
      `configuration: limits.body_memory: must be at least listeners.${large}.max_request_size, or a body of that size never fits`,
    );
  const inside = sealKeyFiles(config).find((file) => isInside(file, config.data_dir));
  if (inside !== undefined) {
    throw new StartError(
      `configuration: seal: the key file ${inside} is inside data_dir, so a copy of it would contain data and key: move the file`,
    );
  }
  return config;
}

function sealKeyFiles({ seal }: Config): string[] {
  if (seal.type !== 'static') return [];
  return [seal.key_file, seal.previous?.key_file].filter((file) => file !== undefined);
}

function isInside(file: string, folder: string): boolean {
  const path = relative(realPath(folder), realPath(file));
  return path !== '..' && !path.startsWith(`..${sep}`);
}

/** Resolves symbolic links in the part of the path that exists. */
function realPath(path: string): string {
  const absolute = resolve(path);
  try {
    return realpathSync(absolute);
  } catch {
    const parent = dirname(absolute);
    return parent === absolute ? absolute : join(realPath(parent), basename(absolute));
  }
}

/** Reads a configuration file in YAML, which includes JSON. @throws StartError */
export function readConfigFile(file: string, environment: NodeJS.ProcessEnv = process.env): Config {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartError(`configuration: ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
  let input: unknown;
  try {
    input = parseYaml(text, { uniqueKeys: true });
  } catch (error) {
    throw new StartError(`configuration: ${file} is not valid YAML: ${(error as Error).message.split('\n')[0]}`);
  }
  return parseConfig(input, environment);
}

/** Returns whether only processes on this machine can reach the host. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Returns `host:port`, an IPv6 host in brackets, as the configuration file has it. */
export const addressText = ({ host, port }: ListenerConfig['address']): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;
