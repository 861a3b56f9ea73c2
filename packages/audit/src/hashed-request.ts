import { anything, type JsonSchema } from '@transitd/http';
import type { HashText } from './audit-key.ts';
import { hashedData } from './hashed-data.ts';

/**
 * The members of a request as an entry shows them. Names that the operation does not declare are hashed as well as texts: what is sent in the
 * wrong form, as a token in the place of JSON that a form reads as a name, would else be there in clear.
 */
export function hashedRequest(data: unknown, schema: JsonSchema, hash: HashText): unknown {
  return shown(data, schema, hash, '');
}

function shown(value: unknown, schema: JsonSchema, hash: HashText, field: string): unknown {
  if (Array.isArray(value)) return value.map((item) => shown(item, schema.items ?? anything, hash, ''));
  if (typeof value !== 'object' || value === null) return hashedData(value, hash, field);
  const entry: Record<string, unknown> = Object.create(null);
  for (const [name, member] of Object.entries(value)) {
    const declared = memberSchema(schema, name);
    if (declared === undefined) entry[hash(name)] = shown(member, anything, hash, '');
    else entry[name] = shown(member, declared, hash, name);
  }
  return entry;
}

/** The schema of a member; undefined for one that is not declared. Maps declare all names. */
function memberSchema(
  { properties = {}, additionalProperties, anyOf = [], allOf = [] }: JsonSchema,
  name: string,
): JsonSchema | undefined {
  if (Object.hasOwn(properties, name)) return properties[name];
  if (typeof additionalProperties === 'object') return additionalProperties;
  if (additionalProperties === true) return anything;
  for (const other of [...anyOf, ...allOf]) {
    const found = memberSchema(other, name);
    if (found !== undefined) return found;
  }
  return undefined;
}
