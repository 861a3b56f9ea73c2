/** A JSON Schema (2020-12), as in OpenAPI 3.1; only the keywords used here. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly contentEncoding?: string;
  readonly contentMediaType?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

export const string: JsonSchema = { type: 'string' };
export const integer: JsonSchema = { type: 'integer' };
export const number: JsonSchema = { type: 'number' };
export const boolean: JsonSchema = { type: 'boolean' };
export const nothing: JsonSchema = { type: 'null' };
/** RFC 3339. */
export const time: JsonSchema = { type: 'string', format: 'date-time' };
export const anything: JsonSchema = {};

export const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items });
export const map = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values });
export const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, nothing] });
export const constant = (...values: readonly (string | number | boolean)[]): JsonSchema =>
  values.length === 1 ? { const: values[0] } : { enum: values };

/** @param members - the required members */
export const object = (
  members: Readonly<Record<string, JsonSchema>>,
  optional: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema => ({
  type: 'object',
  properties: { ...members, ...optional },
  ...(Object.keys(members).length > 0 && { required: Object.keys(members) }),
});
