import { type JsonSchema, object } from './json-schema.ts';

/**
 * What a field may hold. Durations become whole seconds, `strings` is a list and `texts` are texts by name; a `lease` is a duration, or
 * `system` for what is left to the node, or empty for what stays; `any` is taken as it was sent.
 */
export type FieldKind = 'bool' | 'int' | 'string' | 'strings' | 'texts' | 'duration' | 'lease' | 'any';

/** What more is said of a field. Its reader does not look at it: what is refused, the operation refuses, as a test sees to. */
export interface FieldDetail {
  /** Without it the request is refused. */
  readonly required?: true;
  /** The field of the same operation under which the same value may be given. */
  readonly aliasOf?: string;
  /** What holds when it is absent. */
  readonly default?: string | number | boolean;
  readonly oneOf?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  /** It has no effect, and a caller who sets it is warned. */
  readonly ignored?: true;
  /** The rest of what a value has to be, where the kind does not say it. */
  readonly shape?: JsonSchema;
}

/** One member of a request: how it is read, and what the document says of it. */
export interface Field<Kind extends FieldKind = FieldKind> extends FieldDetail {
  readonly kind: Kind;
  /** In a few words, for callers. */
  readonly about: string;
}

/** A route's fields by name, path parameters included: a constant beside the route. */
export type FieldSchema = Readonly<Record<string, Field>>;

const field =
  <Kind extends FieldKind>(kind: Kind) =>
  (about: string, detail: FieldDetail = {}): Field<Kind> => ({ kind, about, ...detail });

export const bool = field('bool');
export const int = field('int');
export const text = field('string');
export const texts = field('strings');
export const textMap = field('texts');
export const duration = field('duration');
export const lease = field('lease');
export const any = field('any');

/** Binary, as text (RFC 4648 §4). */
export const base64 = (about: string, detail: FieldDetail = {}): Field<'string'> =>
  text(about, { ...detail, shape: { contentEncoding: 'base64', ...detail.shape } });

/** A member that clients send and that has no effect here. */
export const ignoredField = <Kind extends FieldKind>(kind: Kind): Field<Kind> => ({
  kind,
  about: 'Accepted, without effect',
  ignored: true,
});

const seconds: JsonSchema = { type: 'integer', minimum: 0 };
const written: JsonSchema = { type: 'string', minLength: 1, pattern: '^([0-9]+h)?([0-9]+m)?([0-9]+s)?$' };

const shapes: Readonly<Record<FieldKind, JsonSchema>> = {
  bool: { type: 'boolean' },
  int: { type: 'integer' },
  string: { type: 'string' },
  strings: { type: 'array', items: { type: 'string' } },
  texts: { type: 'object', additionalProperties: { type: 'string' } },
  duration: { anyOf: [seconds, written] },
  lease: { anyOf: [seconds, written, { enum: ['system', ''] }] },
  any: {},
};

/** The canonical form of a value; the reader takes more. */
export const schemaOf = ({ kind, about, default: absent, oneOf, min, max, shape }: Field): JsonSchema => ({
  ...shapes[kind],
  description: about,
  ...(absent !== undefined && { default: absent }),
  ...(oneOf && { enum: oneOf }),
  ...(min !== undefined && { minimum: min }),
  ...(max !== undefined && { maximum: max }),
  ...shape,
});

/** An object whose members are fields. */
export const membersOf = (fields: FieldSchema): JsonSchema =>
  object({}, Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, schemaOf(field)])));
