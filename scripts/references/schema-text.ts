/** The parts of a JSON schema that the OpenAPI document uses. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly contentEncoding?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
}

/** Returns the type of a value in a few words: `integer, 0 to 10`, `list of strings`, `object with \`a\`, \`b\``. */
export function typeText(schema: Schema): string {
  if (schema.$ref !== undefined) return code(schema.$ref.replace(/^.*\//, ''));
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeText))].join(' or ');
  if ('const' in schema) return code(JSON.stringify(schema.const));
  if (schema.enum !== undefined) return enumText(schema.enum);
  if (schema.type === 'array') return `list of ${itemsText(schema.items)}${lengths(schema)}`;
  if (schema.type === 'object') return objectText(schema);
  return `${plainType(schema)}${limits(schema)}`;
}

const enumText = (values: readonly unknown[]): string =>
  `${values.length === 1 ? '' : 'one of '}${values.map((value) => code(String(value))).join(', ')}`;

/** Returns the type of the items of a list: in the plural if it is one word. */
function itemsText(items: Schema | undefined): string {
  if (items === undefined || items.type === undefined) return items === undefined ? 'any values' : typeText(items);
  const text = typeText(items);
  return items.type === 'object' ? text.replace(/^object/, 'objects') : text === items.type ? `${text}s` : text;
}

const plainType = ({ type, format, contentEncoding }: Schema): string =>
  contentEncoding ?? (format === undefined ? (type ?? 'any value') : `${type} (${format})`);

function objectText({ properties = {}, additionalProperties }: Schema): string {
  const names = Object.keys(properties);
  if (names.length > 0) return `object with ${names.map(code).join(', ')}`;
  return typeof additionalProperties === 'object' ? `object of ${typeText(additionalProperties)}` : 'object';
}

/** Returns the limits of a number or of the length of a text. */
function limits({ minimum, maximum, minLength, maxLength }: Schema): string {
  const range = rangeText(minimum, maximum);
  const length = rangeText(minLength, maxLength);
  return `${range === '' ? '' : `, ${range}`}${length === '' ? '' : `, ${length} characters`}`;
}

const lengths = ({ minItems, maxItems }: Schema): string => {
  const range = rangeText(minItems, maxItems);
  return range === '' ? '' : `, ${range} items`;
};

function rangeText(min: number | undefined, max: number | undefined): string {
  if (min !== undefined && max !== undefined) return min === max ? numberText(min) : `${numberText(min)} to ${numberText(max)}`;
  if (min !== undefined) return `at least ${numberText(min)}`;
  return max === undefined ? '' : `at most ${numberText(max)}`;
}

const numberText = (value: number): string => value.toLocaleString('en-US');

export const code = (text: string): string => `\`${text}\``;
