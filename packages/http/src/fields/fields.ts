import { integerOf, secondsOf } from '@transitd/process';
import { withWarnings } from '../reply/failure-with-warnings.ts';
import { RequestError } from '../reply/request-error.ts';
import type { Field, FieldSchema } from './field.ts';
import type { Body, JsonValue } from './json.ts';
import { checkTextLength, hasNoMembers, invalidField, textList, textsByName } from './text-list.ts';

interface Converted {
  readonly bool: boolean;
  readonly int: number;
  readonly string: string;
  readonly strings: readonly string[];
  readonly texts: Readonly<Record<string, string>>;
  readonly duration: number;
  readonly lease: number;
  readonly any: JsonValue;
}

export interface Fields<S extends FieldSchema> {
  /**
   * Converted values by name, in an object without a prototype. Undefined for an absent field, and for null in a field that is not a
   * string; the operation applies its default.
   */
  readonly values: {
    readonly [Name in keyof S]: S[Name] extends { readonly inPath: true }
      ? string
      : Converted[NonNullable<S[Name]>['kind']] | undefined;
  };
  /** Warnings about members without effect. */
  readonly warnings: readonly string[];
}

/** Parameters of a path by name. Those that are no fields, such as the mount, are ignored. */
type PathParameters = Readonly<Partial<Record<string, string>>>;
const noPathParameters: PathParameters = {};

/**
 * Converts all members of a body before anything is executed. The conversion is lenient, as in the peers. A path parameter overrides a
 * member of the same name. A warning names unknown members.
 * @throws RequestError `invalid_field`, `invalid_request`; with the warnings, if there are any
 */
export function fields<S extends FieldSchema>(
  schema: S,
  body: Body,
  pathParameters: PathParameters = noPathParameters,
): Fields<S> {
  const values: Record<string, unknown> = Object.create(null);
  const unrecognized = new WarningNames();
  const replaced = new WarningNames();
  const ignored = new WarningNames();
  let refused: unknown;
  for (const name in body) {
    if (!Object.hasOwn(schema, name)) unrecognized.add(name);
    else if (Object.hasOwn(pathParameters, name)) replaced.add(name);
    else {
      const field = schema[name];
      try {
        values[name] = converted(name, field, body[name]);
        if (field?.unsupported !== undefined && isSet(body[name]) && isSet(values[name] as JsonValue))
          throw new RequestError('invalid_request', `${name} is not supported: ${field.unsupported}`);
      } catch (error) {
        refused ??= error; // thrown below, with the warnings about all members
      }
      if (field?.ignored === true && (isSet(body[name]) || isTurnedOff(field, values[name])) && values[name] !== field.default)
        ignored.add(name);
    }
  }
  if (refused === undefined)
    for (const name in pathParameters)
      if (Object.hasOwn(schema, name)) values[name] = converted(name, schema[name], pathParameters[name]);
  const warnings = [
    ...unrecognized.warning('Endpoint ignored these unrecognized parameters'),
    ...ignored.warning('These parameters have no effect here'),
    ...replaced.warning("Endpoint replaced the value of these parameters with the values captured from the endpoint's path"),
  ];
  if (refused !== undefined) throw withWarnings(refused, warnings);
  return { values: values as Fields<S>['values'], warnings };
}

/** Returns whether a value is set. Clients send unused settings as empty or false; these need no warning. */
export function isSet(value: JsonValue | undefined): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return value !== undefined && value !== null && value !== false && value !== '' && value !== 0 && value !== 'false';
}

/** Returns whether a value is false where true is in force. */
const isTurnedOff = (field: Field, value: unknown): boolean => field.default === true && value === false;

/** Returns the members of a field that is an object; empty if the field was absent or `[]`. @throws RequestError `invalid_field` */
export function objectIn(name: string, value: JsonValue | undefined): Body {
  if (hasNoMembers(value)) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as Body;
  throw invalidField(name, 'expected an object');
}

/** Collects names that a caller has chosen for a warning, limited in number and length. */
class WarningNames {
  static readonly #namesMax = 32;
  static readonly #charsMax = 128;
  #names: string[] | undefined;
  #count = 0;

  add(name: string): void {
    this.#count += 1;
    this.#names ??= [];
    if (this.#names.length < WarningNames.#namesMax)
      this.#names.push(name.length > WarningNames.#charsMax ? `${name.slice(0, WarningNames.#charsMax)}…` : name);
  }

  warning(text: string): readonly string[] {
    if (this.#names === undefined) return [];
    const more = this.#count - this.#names.length;
    return [`${text}: [${this.#names.sort().join(' ')}]${more > 0 ? ` and ${more} more` : ''}`];
  }
}

/** Returns a value as a field of this kind; undefined for an absent one. @throws RequestError `invalid_field` */
export function converted(name: string, field: Field | undefined, value: JsonValue | undefined): unknown {
  if (value === undefined) return undefined;
  const kind = field?.kind;
  // The peers read null as an empty string; for other types null means absent.
  if (value === null) return kind === 'string' ? '' : undefined;
  switch (kind) {
    case 'bool':
      return toBool(name, value);
    case 'int':
      return value === '' && field?.dropsEmpty === true ? undefined : toInt(name, value);
    case 'string':
      if (typeof value === 'string' && field?.long !== true) checkTextLength(name, value);
      return field?.trimmed === true ? toText(name, value).trim() : toText(name, value);
    case 'duration':
      return toSeconds(name, value, field?.signed);
    case 'lease':
      return value === '' ? undefined : value === 'system' ? 0 : toSeconds(name, value);
    case 'strings':
      return toTexts(name, value, field);
    case 'texts':
      return textsByName(name, value);
    default:
      return value;
  }
}

function toTexts(name: string, value: JsonValue, { dropsEmpty, limits }: Partial<Field> = {}): readonly string[] | undefined {
  const texts = textList(name, value);
  if (texts === undefined || !(dropsEmpty ?? limits)) return texts;
  const kept = texts.filter((text) => text !== '');
  if (limits && kept.length === 0 && texts.length > 0)
    throw invalidField(name, 'it has only empty strings; send an empty list for no limit');
  return kept;
}

// As in Go's strconv.ParseBool. An empty string is false.
const booleans: ReadonlyMap<JsonValue, boolean> = new Map<JsonValue, boolean>([
  ...[true, 1, '1', 't', 'T', 'TRUE', 'true', 'True'].map((value) => [value, true] as const),
  ...[false, 0, '0', 'f', 'F', 'FALSE', 'false', 'False', ''].map((value) => [value, false] as const),
]);

function toBool(name: string, value: JsonValue): boolean {
  const result = booleans.get(value);
  if (result === undefined) throw invalidField(name, 'expected a boolean');
  return result;
}

function toInt(name: string, value: JsonValue): number {
  if (typeof value === 'number') return safeInteger(name, value);
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value === '') return 0;
  const integer = typeof value === 'string' ? integerOf(value) : Number.NaN;
  if (Number.isNaN(integer)) throw invalidField(name, 'expected an integer');
  return safeInteger(name, integer);
}

/** Refuses integers beyond 2^53, because the JSON parser may have rounded them. */
function safeInteger(name: string, value: number): number {
  if (!Number.isInteger(value)) throw invalidField(name, 'expected an integer');
  if (!Number.isSafeInteger(value)) throw invalidField(name, 'value out of range');
  return value + 0; // -0 becomes 0
}

function toText(name: string, value: JsonValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') {
    // Beyond 2^53 the number may differ from the digits that were sent, and beyond 1.8e308 it is not finite.
    if (Math.abs(value) > Number.MAX_SAFE_INTEGER) throw invalidField(name, 'value out of range');
    return String(value);
  }
  if (typeof value === 'boolean') return value ? '1' : '0';
  throw invalidField(name, `expected a string, got ${Array.isArray(value) ? 'an array' : 'an object'}`);
}

/** The longest duration in seconds that Go can represent (nanoseconds in 64 bits). */
const secondsMax = 9_223_372_036;

function toSeconds(name: string, value: JsonValue, isSigned = false): number {
  const seconds =
    typeof value === 'number' ? value : value === '' ? 0 : typeof value === 'string' ? secondsOf(value) : Number.NaN;
  if (!Number.isInteger(seconds)) throw invalidField(name, 'expected a duration such as 3600, "90m", "1h30m" or "1d"');
  if (seconds < 0 && !isSigned) throw invalidField(name, `cannot provide negative value '${seconds}'`);
  if (Math.abs(seconds) > secondsMax) throw invalidField(name, 'duration out of range');
  return seconds + 0;
}
