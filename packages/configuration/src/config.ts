import { readFileSync, realpathSync } from 'node:fs';
import { isIP } from 'node:net';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { StartError } from '@transitd/process';
import { z } from 'zod';
import { withEnvironment } from './environment.ts';
import { type Fault, faultsOf, type SectionSchema, startErrorOf } from './faults.ts';
import { issueWords } from './issue-words.ts';
import { configSchema } from './schema.ts';
import { type ConfigSource, parseSource } from './source.ts';

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
export type ListenerConfig = Config['listeners'][number];
export type LogConfig = Config['log'];

const schema = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }) as SectionSchema;

/** Where the checked configuration was read. */
export interface ConfigFile {
  readonly file: string;
  readonly positionOf: ConfigSource['positionOf'];
}

/**
 * Checks a configuration and returns it typed: every key is known and every value in its range. A setting in `environment` replaces the one
 * in `input`; a section in `fixed` replaces the same section of `input` and of `environment` as a whole.
 * @param from - the file of `input`, for the positions in errors
 * @throws StartError that names all faults: each with its place, key, expected form and value
 */
export function parseConfig(
  input: unknown,
  environment: NodeJS.ProcessEnv = {},
  fixed: Partial<ConfigInput> = {},
  from?: ConfigFile,
): Config {
  const { settings, variableOf, faults: unknown } = withEnvironment(input ?? {}, environment);
  const overlaid = Object.keys(fixed).length === 0 ? settings : { ...(settings as object), ...fixed };
  const result = configSchema.safeParse(overlaid, { error: issueWords });
  const faults = result.success
    ? [...unknown, ...combinationFaults(result.data)]
    : [...unknown, ...result.error.issues.flatMap((issue) => faultsOf(issue, overlaid, schema))];
  if (result.success && faults.length === 0) return result.data;
  throw startErrorOf(faults, ({ path, isKey = false }) => {
    const variable = variableOf(path);
    if (variable !== undefined || from === undefined || unknown.some(({ path: [name] }) => name === path[0])) return variable;
    return `${from.file}:${from.positionOf(path, isKey ? 'key' : 'value')}`;
  });
}

/** Returns the faults in combinations of keys. Each key must already be valid by itself. */
function combinationFaults(config: Config): readonly Fault[] {
  const faults: Fault[] = [];
  const { cluster_addr, cluster_listen, retry_join, listeners, limits, data_dir } = config;
  if (cluster_addr === undefined && (retry_join.length > 0 || cluster_listen !== undefined)) {
    const text = 'is required if retry_join or cluster_listen is set: it is the address that other nodes connect to';
    faults.push({ path: ['cluster_addr'], text });
  }
  const large = listeners.findIndex(({ max_request_size }) => max_request_size > limits.body_memory);
  if (large >= 0) {
    const text = `must be at least listeners.${large}.max_request_size, or a body of that size never fits`;
    faults.push({ path: ['limits', 'body_memory'], text });
  }
  const inside = sealKeyFiles(config).find((file) => isInside(file, data_dir));
  if (inside !== undefined) {
    const text = `the key file ${inside} is inside data_dir, so a copy of it would contain data and key: move the file`;
    faults.push({ path: ['seal'], text });
  }
  return faults;
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
  const { input, mistakes, positionOf } = parseSource(text);
  if (mistakes.length > 0) {
    const places = mistakes.map((mistake) => `${file}:${mistake}`);
    throw new StartError(`configuration: ${file} is not valid YAML: ${places.join('\n  ')}`);
  }
  return parseConfig(input, environment, {}, { file, positionOf });
}

/** Returns whether only processes on this machine can reach the host. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Returns `host:port`, an IPv6 host in brackets, as the configuration file has it. */
export const addressText = ({ host, port }: ListenerConfig['address']): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;
