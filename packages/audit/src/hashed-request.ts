import { anything, type JsonSchema } from '@transitd/http';
import type { HashText } from './audit-key.ts';
import { hashedData } from './hashed-data.ts';

/**
 * Returns the members of a request for an entry. Names that the operation does not declare are hashed too: a secret that is sent in the
 * wrong format can be parsed as a name, for example a token in a form body instead of JSON.
 */
export function hashedRequest(data: unknown, schema: JsonSchema, hash: HashText): unknown {
  return hashedMembers(data, schema, hash, '');
}

function hashedMembers(value: unknown, schema: JsonSchema, hash: HashText, field: string): unknown {
  if (Array.isArray(value)) return value.map((item) => hashedMembers(item, schema.items ?? anything, hash, ''));
  if (typeof value !== 'object' || value === null) return hashedData(value, hash, field);
  const entry: Record<string, unknown> = Object.create(null);
  for (const [name, member] of Object.entries(value)) {
    const declared = memberSchema(schema, name);
    if (declared === undefined) entry[hash(name)] = hashedMembers(member, anything, hash, '');
    else entry[name] = hashedMembers(member, declared, hash, name);
  }
  return entry;
}

/** Returns the schema of a member; undefined when it is not declared. A map declares every name. */
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
