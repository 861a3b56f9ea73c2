import { type JsonSchema, object } from '@transitd/http';

/** A member of an answer: its schema, and how its value follows from the source. */
type Member<Source> = readonly [schema: JsonSchema, of: (source: Source) => unknown];

/** The members of an answer by name, in their order. A member whose name ends with `?` is not always present. */
export type Members<Source> = Readonly<Record<string, Member<Source>>>;

/** An object in answers, or a part of one. */
export interface Shown<Source> {
  readonly members: Members<Source>;
  readonly schema: JsonSchema;
  /** Returns the object, without members that are undefined. */
  json(source: Source): Readonly<Record<string, unknown>>;
}

/** Declares an object in answers once: its members, their schemas and their values. */
export function shown<Source>(members: Members<Source>): Shown<Source> {
  const all = Object.entries(members).map(([written, [schema, of]]) => ({ name: written.replace('?', ''), written, schema, of }));
  const schemasOf = (isOptional: boolean) =>
    Object.fromEntries(
      all.flatMap(({ name, written, schema }) => (written.endsWith('?') === isOptional ? [[name, schema]] : [])),
    );
  return {
    members,
    schema: object(schemasOf(false), schemasOf(true)),
    json: (source) => {
      const json: Record<string, unknown> = {};
      for (const { name, of } of all) {
        const value = of(source);
        if (value !== undefined) json[name] = value;
      }
      return json;
    },
  };
}

/** Returns a number of milliseconds as answers have it. */
export const rounded = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : Math.round(ms));

/** Returns a time of the records in the form of answers; undefined for none. */
export const timeText = (utcMs: number | undefined): string | undefined =>
  utcMs === undefined ? undefined : new Date(utcMs).toISOString();
