import { type JsonSchema, parsePath, type Verb } from '@transitd/http';
import type { Services } from '@transitd/node';
import { type Answers, sharedSchemas, wrappingToken } from '../src/operation/answers.ts';
import type { Route } from '../src/operation/operation.ts';
import { RouteLookup } from '../src/pipeline/route-lookup.ts';

interface Answered {
  readonly status: number;
  readonly text: string;
}

/** Compares successful answers with the schemas that their operations declare. A member that the schema does not name is a fault too. */
export class DeclaredAnswers {
  readonly #routes: RouteLookup;

  constructor(routes: readonly Route[]) {
    this.#routes = new RouteLookup(routes);
  }

  /** @throws Error that names each difference */
  check(method: string, path: string, { status, text }: Answered, mounts: Services['mounts'] | undefined): void {
    if (status >= 300 || method === 'HEAD') return;
    const url = `/v1/${path}`;
    const parsed = parsePath(url);
    const verb = (method === 'GET' && parsed.query.get('list') === 'true' ? 'LIST' : method === 'PUT' ? 'POST' : method) as Verb;
    const operation = this.#routes.find({ path: parsed, url, verb }, mounts)?.operation;
    if (operation === undefined || !('answers' in operation)) return;
    const answer = (operation.answers as Answers)[status] ?? (operation.answers as Answers)['default'];
    const said = answer === undefined ? [`the status ${status} is not declared`] : differences(answer, status, text);
    if (said.length > 0) throw new Error(`the answer of ${method} ${path} differs from its declaration:\n${said.join('\n')}`);
  }
}

function differences({ type, schema }: Answers[string], status: number, text: string): readonly string[] {
  if (schema === undefined) return text === '' ? [] : [`${status} is declared without content`];
  if (type !== 'application/json' || !text.startsWith('{')) return [];
  const value: unknown = JSON.parse(text);
  const isWrapped = (value as { wrap_info?: unknown }).wrap_info != null;
  return violations(isWrapped ? (wrappingToken[200]?.schema ?? {}) : schema, value, 'answer');
}

/** Returns what is wrong with a value. Objects may have only the properties that the schema names. */
export function violations(schema: JsonSchema, value: unknown, at: string): readonly string[] {
  if (schema.$ref !== undefined)
    return violations(sharedSchemas[schema.$ref.split('/').at(-1) as keyof typeof sharedSchemas], value, at);
  if (schema.anyOf !== undefined) {
    const tries = schema.anyOf.map((each) => violations(each, value, at));
    return tries.toSorted((one, other) => one.length - other.length)[0] ?? [];
  }
  if ('const' in schema && schema.const !== value) return [`${at} is not ${JSON.stringify(schema.const)}`];
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return [`${at} is ${JSON.stringify(value)}, which is not declared`];
  const types = schema.type === undefined ? undefined : [schema.type].flat();
  if (types !== undefined && !types.some((type) => isOf(type, value))) return [`${at} is not of the type ${types.join(', ')}`];
  if (Array.isArray(value)) return value.flatMap((item, i) => violations(schema.items ?? {}, item, `${at}[${i}]`));
  if (typeof value !== 'object' || value === null) return [];
  const { properties, additionalProperties: more = properties === undefined, required = [] } = schema;
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}.${name} is missing`);
  const wrong = Object.entries(value).flatMap(([name, member]) => {
    const declared = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : more;
    if (declared === false || declared === undefined) return [`${at}.${name} is not declared`];
    return declared === true ? [] : violations(declared, member, `${at}.${name}`);
  });
  return [...missing, ...wrong];
}

const isOf = (type: string, value: unknown): boolean =>
  ({
    array: Array.isArray(value),
    boolean: typeof value === 'boolean',
    integer: Number.isInteger(value),
    null: value === null,
    number: typeof value === 'number',
    object: typeof value === 'object' && value !== null && !Array.isArray(value),
    string: typeof value === 'string',
  })[type] === true;
