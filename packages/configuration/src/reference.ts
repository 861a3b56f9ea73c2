import { z } from 'zod';
import { variableNameOf } from './environment.ts';
import { keyDocs } from './key-docs.ts';
import { configSchema } from './schema.ts';
import type { KeyPath } from './source.ts';

/** The JSON schema of a key, with what `schema.ts` adds to it: `kind` and `range` of durations and sizes. */
interface KeySchema {
  readonly type?: string | readonly string[];
  readonly kind?: string;
  readonly range?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, KeySchema>>;
  readonly required?: readonly string[];
  readonly items?: KeySchema;
  readonly additionalProperties?: KeySchema | false;
  readonly oneOf?: readonly KeySchema[];
}

interface Key {
  /** As in `keyDocs`: `listeners[].address`. */
  readonly name: string;
  readonly schema: KeySchema;
  readonly isRequired: boolean;
}

/**
 * Returns every key of the schema, sections before their keys, in the order of the schema. `migrate_seal_from` stands for its keys, which
 * are those of `seal`.
 */
export function configKeys(): readonly Key[] {
  const root = z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }) as KeySchema;
  const keys = [...keysBelow('', root)].filter(({ name }) => !name.startsWith('migrate_seal_from.'));
  const named = new Map<string, Key>();
  // The types of a seal or of an audit device share keys: their alternatives become one key.
  for (const key of keys) named.set(key.name, merged(named.get(key.name), key));
  return [...named.values()];
}

function* keysBelow(
  prefix: string,
  { properties = {}, required = [], items, additionalProperties, oneOf = [] }: KeySchema,
): Generator<Key> {
  for (const [name, schema] of Object.entries(properties)) {
    const full = prefix === '' ? name : `${prefix}.${name}`;
    yield { name: full, schema, isRequired: required.includes(name) };
    yield* keysBelow(full, schema);
  }
  for (const each of oneOf) yield* keysBelow(prefix, each);
  if (items !== undefined) yield* entriesOf(`${prefix}[]`, items);
  if (additionalProperties !== undefined && additionalProperties !== false) yield* entriesOf(`${prefix}.*`, additionalProperties);
}

/** The entries of a list or of a section with free names. They need a row of their own only if they are not sections. */
function* entriesOf(name: string, schema: KeySchema): Generator<Key> {
  if (schema.properties === undefined && schema.oneOf === undefined) yield { name, schema, isRequired: false };
  yield* keysBelow(name, schema);
}

function merged(before: Key | undefined, key: Key): Key {
  if (before === undefined) return key;
  const values = [...(before.schema.enum ?? [before.schema.const]), ...(key.schema.enum ?? [key.schema.const])];
  const choices = values.filter((value) => value !== undefined);
  return { ...before, schema: choices.length === 0 ? before.schema : { type: 'string', enum: [...new Set(choices)] } };
}

/** Returns `docs/configuration.md`. */
export function configurationReference(): string {
  const rows = configKeys().map((key) => {
    const doc = keyDocs[key.name];
    if (doc === undefined) throw new Error(`${key.name} has no text in key-docs.ts`);
    const { name, schema } = key;
    const about = doc.reload ? `${doc.about}. **SIGHUP**` : doc.about;
    const cells = [`\`${name}\``, about, acceptedBy(schema), defaultOf(key), variableOf(key.name)];
    return `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`;
  });
  return [intro, head, '|---|---|---|---|---|', ...rows, ''].join('\n');
}

const head = '| key | what it sets | value | default | variable |';
const intro = `# Configuration

Every key of the configuration file of \`transitd server --config FILE\`, in YAML or JSON. Written by \`npm run build\` from
the schema that checks the file: do not edit it. [Run a node](node-operations.md) has an example.

- \`listeners[].address\` is the key \`address\` of each entry of the list \`listeners\`; \`*\` is a name that you choose.
- A *duration* is a text such as \`10s\`, \`150ms\` or \`1h30m\` (ms, s, m, h, d), or a number of seconds. A *size* is a text such as
  \`512MiB\` (B, KiB, MiB, GiB, TiB), or a number of bytes.
- An environment variable replaces the key in the file. Those of a listener set the first one.
- An unknown key, a value out of range or an unknown variable \`TRANSITD_…\` ends the start with exit code 1. The message names every
  fault with file, line and column, and for a misspelled name the one that was probably meant. Faults that involve several keys are
  reported once each key is valid by itself. \`transitd doctor --config FILE\` checks a file without a start.
- A change needs a restart, except of the keys marked **SIGHUP**, which that signal applies; the log names other keys that have changed. A
  file with faults changes no setting. A listener whose address has changed reads its present TLS files again until the restart.
`;

/** Returns the type with its range, or the values of a choice. */
function acceptedBy(schema: KeySchema): string {
  const range = rangeOf(schema);
  const type = typeOf(schema);
  return range === '' ? type : type === 'choice' ? range : `${type}, ${range}`;
}

const typeOf = ({ kind, type, format, enum: values, const: only }: KeySchema): string =>
  kind ?? (format === 'uri' ? 'URL' : values !== undefined || only !== undefined ? 'choice' : nameOf(type));

const typeNames: Readonly<Record<string, string>> = { object: 'section', array: 'list', boolean: 'true or false' };
const nameOf = (type: KeySchema['type']): string => (typeof type === 'string' ? (typeNames[type] ?? type) : 'section');

function defaultOf({ schema, isRequired }: Key): string {
  if (isRequired) return '**required**';
  const { default: value } = schema;
  if (value === undefined || (typeof value === 'object' && Object.keys(value ?? {}).length === 0)) return '';
  return `\`${typeof value === 'object' ? JSON.stringify(value) : String(value)}\``;
}

function rangeOf({ range, enum: values, const: only, minimum, maximum }: KeySchema): string {
  if (range !== undefined) return range;
  if (values !== undefined || only !== undefined) return (values ?? [only]).map((value) => `\`${value}\``).join(', ');
  const low = minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? '' : String(minimum);
  const high = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? '' : String(maximum);
  return low === '' && high === '' ? '' : high === '' ? `at least ${low}` : `${low} to ${high}`;
}

function variableOf(name: string): string {
  const path: KeyPath = name
    .replaceAll('[]', '.0')
    .split('.')
    .map((part) => (part === '0' ? 0 : part));
  const variable = variableNameOf(path);
  return variable === undefined ? '' : `\`${variable}\``;
}
