import { dataReply, type FieldSchema, type Fields, type JsonSchema, pathText, writtenReply } from '@transitd/http';
import * as answers from './answers.ts';
import { type Context, found, guarded, type OperationDescription, type Result, type Route, type TypedCall } from './operation.ts';
import { namesReply, pageFields } from './pages.ts';

/** A kind of record that callers read, list, write and delete by name. */
interface RecordKind<C, S extends FieldSchema> {
  /** Name of the kind in descriptions, such as `role`. */
  readonly noun: string;
  /** Description of the name. */
  readonly name: string;
  readonly takes: S;
  /** Schema of a record in an answer. */
  readonly shown: JsonSchema;
  /** Returns a record as an answer shows it; undefined if there is none. */
  find(context: C, name: string): Promise<object | undefined>;
  list(context: C): Promise<readonly string[]>;
  /** Creates the record, or changes its given fields. May return warnings. */
  write(context: C, name: string, values: Fields<S>['values']): Promise<void> | Promise<readonly string[]>;
  delete(context: C, name: string): Promise<unknown>;
}

/** An operation that is declared apart from its path and its rights. */
export interface Handler<C, S extends FieldSchema> extends OperationDescription<S> {
  readonly takes: S;
  run(context: C, call: TypedCall<S>): Result;
}

const handler = <C, S extends FieldSchema>(declared: Handler<C, S>): Handler<C, S> => declared;

/** Returns the operations on a kind of record. */
export function recordOperations<C, S extends FieldSchema>({ noun, takes, shown, ...kind }: RecordKind<C, S>) {
  const name = { name: pathText(kind.name) };
  return {
    read: handler<C, typeof name>({
      about: `Read a ${noun}`,
      takes: name,
      answers: answers.data(shown),
      run: async (context, { values }) => dataReply(found(await kind.find(context, values.name))),
    }),
    list: handler<C, typeof pageFields>({
      about: `List ${noun} names`,
      takes: pageFields,
      answers: answers.names,
      run: async (context, { values }) => namesReply(await kind.list(context), values),
    }),
    write: handler<C, typeof name & S>({
      about: `Create a ${noun}, or update the given fields of an existing one`,
      takes: { ...name, ...takes },
      answers: answers.written,
      run: async (context, { values }) => {
        const given: unknown = values; // of a generic schema
        const written = await kind.write(context, (given as Fields<typeof name>['values']).name, given as Fields<S>['values']);
        return writtenReply(written ?? []);
      },
    }),
    remove: handler<C, typeof name>({
      about: `Delete a ${noun}`,
      takes: name,
      answers: answers.written,
      run: async (context, { values }) => {
        await kind.delete(context, values.name);
      },
    }),
  };
}

/** Returns the routes of a kind of record below a path. @param name - prefix of the names of the operations */
export const recordRoutes = <S extends FieldSchema>(
  path: string,
  name: string,
  { read, list, write, remove }: ReturnType<typeof recordOperations<Context, S>>,
): readonly Route[] => [
  { path, operations: { LIST: guarded({ name: `${name}-list`, capability: 'list', ...list }) } },
  {
    path: `${path}/:name`,
    operations: {
      GET: guarded({ name: `${name}-read`, capability: 'read', ...read }),
      POST: guarded({ name: `${name}-write`, capability: 'update', ...write }),
      DELETE: guarded({ name: `${name}-delete`, capability: 'delete', ...remove }),
    },
  },
];
