import { given } from '@transitd/access';
import {
  anything,
  boolean,
  type Field,
  type FieldKind,
  type FieldSchema,
  type Fields,
  integer,
  isSet,
  type JsonSchema,
  type JsonValue,
  list,
  map,
  RequestError,
  string,
} from '@transitd/http';

// Most fields of a request become properties of a record and members of its answer. They are declared once: the values that are read from a
// request, those that an answer shows, the schema of the answer, and the record with its defaults follow from the declaration.

export type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

type WithoutProperty = { readonly aliasOf: string } | { readonly ignored: true } | { readonly unsupported: string };

/**
 * The property of a field, unless it is an alias or has no effect: `max_ttl`, a duration, is `maxTtlS`. If the property ends with `Ms`, the
 * record has the duration in milliseconds.
 */
type Property<Name extends string, F> = F extends WithoutProperty
  ? never
  : F extends { readonly property: infer Own extends string }
    ? Own
    : F extends Field<'duration' | 'lease'>
      ? `${CamelCase<Name>}S`
      : CamelCase<Name>;

/** The values of fields, by property. */
export type Properties<S extends FieldSchema> = {
  readonly [Name in keyof S & string as Property<Name, S[Name]>]: Fields<S>['values'][Name];
};

/** A record of the fields, by property, without those of any kind, which have no default. */
export type RecordOf<S extends FieldSchema> = {
  readonly [Name in keyof S & string as S[Name] extends Field<'any'> ? never : Property<Name, S[Name]>]: NonNullable<
    Fields<S>['values'][Name]
  >;
};

export const camelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

const propertyOf = (name: string, { property, kind }: Field): string =>
  property ?? (kind === 'duration' || kind === 'lease' ? `${camelCase(name)}S` : camelCase(name));

/** Returns the unit of a number in a record: 1000 for a duration in milliseconds. */
const unitsPerSecond = (property: string, { kind }: Field): number =>
  (kind === 'duration' || kind === 'lease') && property.endsWith('Ms') ? 1000 : 1;

/** A field that a record keeps. */
interface KeptField {
  readonly name: string;
  /** The field of which it is an alias; otherwise its own name. */
  readonly main: string;
  readonly property: string;
  readonly units: number;
}

const known = new WeakMap<FieldSchema, readonly KeptField[]>();

/** Returns the fields that records keep. They are derived once from a declaration, and used by every request. */
function keptFields(schema: FieldSchema): readonly KeptField[] {
  const derived = known.get(schema);
  if (derived !== undefined) return derived;
  const kept = Object.entries(schema).flatMap(([name, field]) => {
    const { aliasOf: main = name, ignored, unsupported } = field;
    if (ignored || unsupported !== undefined) return [];
    const property = propertyOf(main, schema[main] ?? field);
    return [{ name, main, property, units: unitsPerSecond(property, field) }];
  });
  known.set(schema, kept);
  return kept;
}

/**
 * Returns the values of a request by property. An alias counts if its field is not given. If the field is given without a value, and the
 * alias with one, either may be meant, and the wrong one may lift a restriction.
 * @throws RequestError `invalid_request`
 */
export function propertiesIn<S extends FieldSchema>(schema: S, values: Fields<S>['values']): Properties<S> {
  const asked: Readonly<Record<string, unknown>> = values;
  const found = new Map<string, { readonly name: string; readonly value: unknown }>();
  for (const { name, main, property, units } of keptFields(schema)) {
    const here = { name, value: typeof asked[name] === 'number' ? asked[name] * units : asked[name] };
    const before = found.get(property) ?? { name, value: undefined };
    const [first, other] = name === main ? [here, before] : [before, here];
    if (first.value !== undefined && !isSet(first.value as JsonValue) && isSet(other.value as JsonValue | undefined))
      throw new RequestError('invalid_request', `${first.name} has no value, but ${other.name} has one: send only one of them`);
    found.set(property, first.value === undefined ? other : first);
  }
  return Object.fromEntries([...found].map(([property, { value }]) => [property, value])) as Properties<S>;
}

/** Returns the values that a request sets, by property. */
export const changesIn = <S extends FieldSchema>(schema: S, values: Fields<S>['values']): Changes<S> =>
  given(propertiesIn(schema, values)) as Changes<S>;

type Changes<S extends FieldSchema> = { readonly [Name in keyof Properties<S>]?: NonNullable<Properties<S>[Name]> };

/** Does not compile for a record that lacks a property of a field. */
type HasAll<S extends FieldSchema, Kept> = [keyof Properties<S>] extends [keyof Kept] ? unknown : never;

/** Returns the values of a record by the names of the fields, in their order; without those that the record does not have. */
export function membersIn<S extends FieldSchema, Kept extends object>(
  schema: S,
  record: Kept & HasAll<S, Kept>,
): Readonly<Record<string, unknown>> {
  const kept = record as Readonly<Record<string, unknown>>;
  const members: Record<string, unknown> = {};
  for (const { name, main, property, units } of keptFields(schema)) {
    const value = kept[property];
    if (name === main && value !== undefined) members[name] = typeof value === 'number' ? value / units : value;
  }
  return members;
}

const emptyOfKind = { bool: false, int: 0, string: '', strings: [], texts: {}, duration: 0, lease: 0 };

/** Returns a new record: each field has the value that is in force without it. */
export const newRecord = <S extends FieldSchema>(schema: S): RecordOf<S> =>
  Object.fromEntries(
    keptFields(schema).flatMap(({ name, main, property }) => {
      const { kind, default: inForce, initial } = schema[main] as Field;
      return name === main && kind !== 'any' ? [[property, inForce ?? initial ?? emptyOfKind[kind]]] : [];
    }),
  ) as RecordOf<S>;

/** The schemas of values in answers, by kind. Durations are in seconds. */
export const schemaOfKind: Readonly<Record<FieldKind, JsonSchema>> = {
  ...{ bool: boolean, int: integer, string, strings: list(string), texts: map(string) },
  ...{ duration: integer, lease: integer, any: anything },
};

/** Returns the schemas of what {@link membersIn} returns. */
export const memberSchemas = <S extends FieldSchema>(schema: S): MemberSchemas<S> =>
  Object.fromEntries(fieldsOf(schema).map(([name, { kind }]) => [name, schemaOfKind[kind]])) as MemberSchemas<S>;

type MemberSchemas<S extends FieldSchema> = {
  readonly [Name in keyof S as S[Name] extends WithoutProperty ? never : Name]: JsonSchema;
};

const fieldsOf = (schema: FieldSchema): readonly (readonly [string, Field])[] =>
  Object.entries(schema).filter(([, { aliasOf, ignored, unsupported }]) => !(aliasOf ?? ignored ?? unsupported));

/** Returns the fields as those of an operation that changes an existing record: an omitted field keeps its value. */
export const keptIfOmitted = <S extends FieldSchema>(schema: S): S =>
  Object.fromEntries(Object.entries(schema).map(([name, { initial: _, ...field }]: [string, Field]) => [name, field])) as S;

/** Returns the members in alphabetical order, as the answers of the peers have them. */
export const sorted = <T>(members: Readonly<Record<string, T>>): Readonly<Record<string, T>> =>
  Object.fromEntries(Object.entries(members).sort(([one], [other]) => (one < other ? -1 : 1)));
