import { type JsonSchema, object } from './json-schema.ts';

/**
 * Type of a field. A `duration` is converted to whole seconds. `strings` is a list of strings; `texts` is a map from names to strings. A
 * `lease` is a duration, or `system` for the node's default, or an empty string for no change. `any` is not converted.
 */
export type FieldKind = 'bool' | 'int' | 'string' | 'strings' | 'texts' | 'duration' | 'lease' | 'any';

type Scalar = string | number | boolean;

/**
 * Returns other spellings of a value, the canonical one first; none if it has no other.
 * @param value - undefined if the field is omitted @param members - the other members, which the spellings may depend on
 */
export type Spellings = (value: Scalar | undefined, members: Readonly<Record<string, unknown>>) => readonly Scalar[];

/**
 * Details of a field for the OpenAPI document. The parser ignores these details, except `long`, `trimmed`, `dropsEmpty`, `limits`,
 * `signed`, `ignored` and `unsupported`. The operations enforce the others, and a test checks that they do.
 */
export interface FieldDetail {
  /** The text is data: the operation limits its length, or treats any length in linear time. The parser limits all other texts. */
  readonly long?: true;
  /** The parser removes white space around the text: a credential that was read from a file often ends with a line break. */
  readonly trimmed?: true;
  /** The parser drops empty texts of a list, which clients send for an empty list. An integer's empty text is no value instead of 0. */
  readonly dropsEmpty?: true;
  /**
   * The list limits what is allowed, and an empty one limits nothing. The parser drops empty texts, but refuses a list of nothing else: it
   * was meant to limit something.
   */
  readonly limits?: true;
  /** A duration may be negative. */
  readonly signed?: true;
  /** The request is refused without the field. */
  readonly required?: true;
  /** A parameter of the path, so that each request has a value. A test compares the fields with the paths. */
  readonly inPath?: true;
  /** The change takes place only if this holds. A DELETE takes it in its query; a misspelled or misplaced one is refused. */
  readonly condition?: true;
  /** Name of the field of the same operation that this is an alias of. */
  readonly aliasOf?: string;
  /** Name of the value in the records and requests of the engines; default: the name of the field in camel case, `ttlS` for a duration. */
  readonly property?: string;
  /** Value if the field is omitted. */
  readonly default?: string | number | boolean;
  /** Value of a new object if the field is omitted; an existing object keeps its value. */
  readonly initial?: string | number | boolean;
  /** Other spellings of a value. Parameter rules of policies compare them too. For a list, the spellings of one item. */
  readonly spellings?: Spellings;
  readonly oneOf?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  /** The field has no effect; setting it to another value than its default causes a warning. */
  readonly ignored?: true;
  /** The parser refuses a request that sets the field, with this reason: without it the caller would get less than requested. */
  readonly unsupported?: string;
  /** Fields of the object. */
  readonly members?: FieldSchema;
  /** Fields of each object in the list. */
  readonly items?: FieldSchema;
  /** Further constraints on the value. */
  readonly shape?: JsonSchema;
}

/** One field of a request: its type and its documentation. */
export interface Field<Kind extends FieldKind = FieldKind> extends FieldDetail {
  readonly kind: Kind;
  /** Short description for callers. */
  readonly about: string;
}

/** Fields by name, path parameters included. */
export type FieldSchema = Readonly<Record<string, Field>>;

/** The type of the field has the details that are given, so that what follows from a declaration can depend on them. */
const field =
  <Kind extends FieldKind>(kind: Kind) =>
  <const Detail extends FieldDetail = FieldDetail>(about: string, detail?: Detail): Field<Kind> & Detail =>
    ({ kind, about, ...detail }) as Field<Kind> & Detail;

export const bool = field('bool');
export const int = field('int');
export const text = field('string');
export const texts = field('strings');
export const textMap = field('texts');
export const duration = field('duration');
export const lease = field('lease');
export const any = field('any');

/** A token, an accessor, or another identifier that is compared as a whole. */
export const credential = <const Detail extends FieldDetail = FieldDetail>(
  about: string,
  detail?: Detail,
): Field<'string'> & Detail => text(about, { trimmed: true, ...detail } as unknown as Detail);

/** A parameter of the path. */
export const pathText = <const Detail extends FieldDetail = FieldDetail>(
  about: string,
  detail?: Detail,
): Field<'string'> & { readonly inPath: true } => text(about, { required: true, inPath: true, ...detail });

/** Binary data as base64 (RFC 4648 §4). */
export const base64 = (about: string, detail: FieldDetail = {}): Field<'string'> =>
  text(about, { ...detail, long: true, shape: { contentEncoding: 'base64', ...detail.shape } });

/**
 * A field that clients send and that has no effect here.
 * @param detail - `default`: the value that is in force; a caller who sends it gets no warning
 */
export const ignoredField = <Kind extends FieldKind>(
  kind: Kind,
  detail: Pick<FieldDetail, 'default' | 'signed'> = {},
): Field<Kind> & { readonly ignored: true } => ({
  kind,
  about: 'Accepted, but has no effect',
  ignored: true,
  ...detail,
});

/** A field of the peers that cannot be set here. @param reason - says what holds instead, or what to set */
export const unsupportedField = <Kind extends FieldKind>(
  kind: Kind,
  reason: string,
): Field<Kind> & { readonly unsupported: string } => ({
  kind,
  about: `Refused unless empty: ${reason}`,
  unsupported: reason,
});

const seconds: JsonSchema = { type: 'integer', minimum: 0 };
const written: JsonSchema = { type: 'string', minLength: 1, pattern: '^([0-9]+h)?([0-9]+m)?([0-9]+s)?$' };

const signedSeconds: JsonSchema = {
  anyOf: [{ type: 'integer' }, { type: 'string', minLength: 2, pattern: '^-?([0-9]+h)?([0-9]+m)?([0-9]+s)?$' }],
};

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

/** Returns the schema of the canonical form of a value; the parser also accepts other forms. */
export const schemaOf = ({
  kind,
  about,
  default: absent,
  oneOf,
  min,
  max,
  members,
  items,
  signed,
  shape,
}: Field): JsonSchema => ({
  ...(signed ? signedSeconds : shapes[kind]),
  description: about,
  ...(absent !== undefined && { default: absent }),
  ...(oneOf && { enum: oneOf }),
  ...(min !== undefined && { minimum: min }),
  ...(max !== undefined && { maximum: max }),
  ...(members && membersOf(members)),
  ...(items && { type: 'array', items: membersOf(items) }),
  ...shape,
});

/** Returns the schema of an object with these fields. */
export function membersOf(fields: FieldSchema): JsonSchema {
  const required = Object.keys(fields).filter((name) => fields[name]?.required);
  return {
    ...object({}, Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, schemaOf(field)]))),
    ...(required.length > 0 && { required }),
  };
}
