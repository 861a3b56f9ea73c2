import { type JsonSchema, membersOf } from '@transitd/http';
import type { Operation } from '../operation/operation.ts';

const schemas = new WeakMap<Operation, JsonSchema>();

/** Returns the schema of all members that an operation declares, for all auth method types. */
export function requestSchema(operation: Operation): JsonSchema {
  const known = schemas.get(operation);
  if (known !== undefined) return known;
  const { takes, byType = {}, body } = operation;
  const described = [takes, ...Object.values(byType).map((each) => each.takes)].filter((fields) => fields !== undefined);
  const schema: JsonSchema = { anyOf: [...described.map(membersOf), ...(body === undefined ? [] : [body])] };
  schemas.set(operation, schema);
  return schema;
}
