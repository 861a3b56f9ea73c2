import { readFileSync } from 'node:fs';
import { StartError } from '@transitd/process';
import { z } from 'zod';
import { withEnvironment } from './environment.ts';
import { type Fault, faultsOf, type SectionSchema, startErrorOf } from './faults.ts';
import { issueWords } from './issue-words.ts';
import { type Config, type ConfigInput, configSchema } from './schema.ts';
import { sealFaults } from './seal-faults.ts';
import { type ConfigSource, parseSource } from './source.ts';
import { storageFaults } from './storage-schema.ts';

/** Returns the JSON Schema of a section or of all keys. That of all keys takes 20 ms, so it is made only where it is needed. */
const jsonSchemaOf = (section: z.ZodType): SectionSchema =>
  z.toJSONSchema(section, { io: 'input', unrepresentable: 'any' }) as SectionSchema;

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
  const {
    settings,
    variableOf,
    faults: unknown,
  } = withEnvironment(input ?? {}, environment, (name) => jsonSchemaOf(configSchema.shape[name]));
  const overlaid = Object.keys(fixed).length === 0 ? settings : { ...(settings as object), ...fixed };
  const result = configSchema.safeParse(overlaid, { error: issueWords });
  const faults = result.success
    ? [...unknown, ...combinationFaults(result.data, environment)]
    : [...unknown, ...faultsOf(result.error.issues, overlaid, jsonSchemaOf(configSchema))];
  if (result.success && faults.length === 0) return result.data;
  throw startErrorOf(faults, ({ path, isKey = false }) => {
    const variable = variableOf(path);
    if (variable !== undefined || from === undefined || unknown.some(({ path: [name] }) => name === path[0])) return variable;
    return `${from.file}:${from.positionOf(path, isKey ? 'key' : 'value')}`;
  });
}

/** Returns the faults in combinations of keys. Each key must already be valid by itself. */
function combinationFaults(config: Config, environment: NodeJS.ProcessEnv): readonly Fault[] {
  const faults: Fault[] = [];
  const { cluster_addr, cluster_listen, retry_join, listeners, limits, workers } = config;
  if (cluster_addr === undefined && (retry_join.length > 0 || cluster_listen !== undefined)) {
    const text = 'is required if retry_join or cluster_listen is set: it is the address that other nodes connect to';
    faults.push({ path: ['cluster_addr'], text });
  }
  const large = listeners.findIndex(({ max_request_size }) => max_request_size > limits.body_memory);
  if (large >= 0) {
    const text = `must be at least listeners.${large}.max_request_size, or a body of that size never fits`;
    faults.push({ path: ['limits', 'body_memory'], text });
  }
  if (workers !== 'auto' && workers >= limits.reads) {
    const text = `must be below limits.reads (${limits.reads}): the main thread and each gateway thread get a share of it`;
    faults.push({ path: ['workers'], text });
  }
  return [...faults, ...sealFaults(config, environment), ...storageFaults(config)];
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
