import { code, type Schema, typeText } from './schema-text.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
}
interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}
interface Response extends Content {
  readonly $ref?: string;
  readonly description?: string;
}
export interface DescribedOperation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Response>>;
  readonly 'x-vault-unauthenticated'?: boolean;
  readonly 'x-vault-sudo'?: boolean;
}
/** The OpenAPI document of a node, as `GET sys/internal/specs/openapi` returns it. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, { readonly description: string }>>;
  };
}

/** Returns docs/api-reference.md: every operation with its parameters, its fields and its successful answers. */
export function apiReference({ paths, components }: ApiDocument): string {
  const sections = new Map<string, string[]>();
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const title = operation.tags?.[0] ?? 'sys';
      sections.set(title, [...(sections.get(title) ?? []), operationText(path, method, operation)]);
    }
  }
  const errors = Object.entries(components.responses).map(([name, { description }]) => [
    name.replace('Refused', ''),
    description,
  ]);
  return [
    '# Reference of the API',
    wrapped(
      'Every operation, generated from the declarations that parse the requests. Paths are relative to `/v1`. The ' +
        'engine is shown at `transit`, each auth method at its own name; both may be mounted elsewhere. [The HTTP API](api.md) explains ' +
        'tokens, formats, limits and the behavior that several operations share.',
    ),
    'Successful answers list the members of `data`, or of the body if it has no `data`.',
    '## Errors',
    table(
      ['status', 'meaning'],
      errors.map(([status = '', about = '']) => [status, about]),
    ),
    '## Shared objects',
    ...Object.entries(components.schemas).flatMap(([name, schema]) => [`### ${name}`, schemaTable(schema)]),
    ...[...sections].flatMap(([title, operations]) => [`## ${title}`, ...operations]),
  ]
    .join('\n\n')
    .concat('\n');
}

function operationText(path: string, method: string, operation: DescribedOperation): string {
  const parts = [`### ${method.toUpperCase()} ${code(path)}`, wrapped(aboutText(operation))];
  const rows = [...(operation.parameters ?? []).map(parameterRow), ...bodyRows(operation.requestBody)];
  if (rows.length > 0) parts.push(table(['field', 'in', 'type', 'meaning'], rows));
  const answers = Object.entries(operation.responses).filter(([, { $ref }]) => $ref === undefined);
  if (answers.length > 0)
    parts.push(answers.map(([status, response]) => wrapped(`- ${status}: ${answerText(response)}`, '  ')).join('\n'));
  return parts.join('\n\n');
}

function aboutText({ summary = '', description, ...operation }: DescribedOperation): string {
  const rights = operation['x-vault-unauthenticated'] ? ' No token.' : operation['x-vault-sudo'] ? ' Needs `sudo`.' : '';
  return `${cell(summary)}.${rights}${description === undefined ? '' : ` ${cell(description)}`}`;
}

const parameterRow = (parameter: Parameter): readonly string[] => [
  code(parameter.name),
  parameter.in,
  typeText(parameter.schema),
  meaning(parameter.description, parameter.schema, parameter.required && parameter.in !== 'path'),
];

function bodyRows(body: Content | undefined): readonly (readonly string[])[] {
  return Object.entries(body?.content ?? {}).flatMap(([type, { schema = {} }]) => {
    const { properties, required = [] } = schema;
    if (properties === undefined) return [['(whole body)', 'body', type, schema.description ?? '']];
    return Object.entries(properties).map(([name, field]) => [
      code(name),
      'body',
      typeText(field),
      meaning(field.description, field, required.includes(name)),
    ]);
  });
}

function meaning(description = '', { default: value }: Schema, isRequired: boolean): string {
  const extra = isRequired ? 'required' : value === undefined || value === '' ? '' : `default ${code(String(value))}`;
  return [description, extra].filter((text) => text !== '').join('; ');
}

function answerText({ description = '', content = {} }: Response): string {
  const bodies = Object.entries(content).map(([type, { schema }]) =>
    type === 'application/json' && schema !== undefined ? bodyText(schema) : type,
  );
  return [cell(description), ...bodies.filter((text) => text !== '')].join('; ');
}

/** Returns the members of an answer, without those of the envelope that are the same in every answer. */
function bodyText(schema: Schema): string {
  const { properties, anyOf } = schema;
  if (anyOf !== undefined) return anyOf.map(bodyText).join(' or ');
  if (properties === undefined || !('request_id' in properties)) return cell(typeText(schema));
  const { data, auth } = properties;
  const told = [data, auth].filter((each) => each !== undefined && each.type !== 'null').map((each) => typeText(each as Schema));
  return cell(told.join(', '));
}

function schemaTable({ properties = {}, required = [], description }: Schema): string {
  const rows = Object.entries(properties).map(([name, field]) => [
    code(name),
    typeText(field),
    [field.description ?? '', required.includes(name) ? '' : 'may be absent'].filter((text) => text !== '').join('; '),
  ]);
  return [...(description === undefined ? [] : [description]), table(['member', 'type', 'meaning'], rows)].join('\n\n');
}

/** Returns the text in lines of at most 120 characters. */
function wrapped(text: string, indent = ''): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + word.length >= 120) lines.push(indent + word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join('\n');
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [rowText(head), `|${'---|'.repeat(head.length)}`, ...rows.map(rowText)].join('\n');

const rowText = (row: readonly string[]): string => `| ${row.map(cell).join(' | ')} |`;

/** Escapes characters that would end a cell, or begin an element of HTML outside of code. */
const cell = (text: string): string =>
  text
    .replaceAll('\n', ' ')
    .replaceAll(/(?<!\\)\|/g, '\\|')
    .split('`')
    .map((part, index) => (index % 2 === 0 ? part.replaceAll('<', '&lt;').replaceAll('{', '&#123;') : part))
    .join('`');
