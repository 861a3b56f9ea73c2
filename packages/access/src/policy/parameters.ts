import { accessTurns, TimeSlice } from '@transitd/event-loop';
import { secondsOf } from '../values/duration.ts';
import { globMatches } from '../values/glob.ts';
import { integerOf } from '../values/integer.ts';

/** A parameter value that a policy lists. */
export type ParameterValue = string | number | boolean;

/** Listed values by parameter name in lower case. An empty list means any value. */
export type ParameterLists = ReadonlyMap<string, readonly ParameterValue[]>;

/** Restrictions of a rule on the parameters of a request. */
export interface ParameterRules {
  /** Names of required parameters in lower case. */
  readonly required: readonly string[];
  /** Empty when every parameter is allowed. `*` means every name. */
  readonly allowed: ParameterLists;
  readonly denied: ParameterLists;
}

/** The fields of a request's body; an object without a prototype. */
export type Parameters = Readonly<Record<string, unknown>>;

/** How an operation reads parameters that are not top-level fields of the body. */
export interface ParameterReading {
  /** Parameters in the path, by name. */
  readonly inPath?: Parameters | undefined;
  /** Other names of a parameter for the same value, by its name. */
  readonly otherNames?: ReadonlyMap<string, readonly string[]> | undefined;
  /** For each field that is an object or a list of objects: the parameter names in these objects. */
  readonly inner?: ReadonlyMap<string, ReadonlySet<string>> | undefined;
}

/** Returns whether the rules restrict nothing. */
export const isUnrestricted = ({ required, allowed, denied }: ParameterRules): boolean =>
  required.length === 0 && allowed.size === 0 && denied.size === 0;

/**
 * Returns whether a request's parameters are within the rules; `itemsWithin` checks the items of lists. Allowed values match
 * narrowly. Denied values match every form that an endpoint reads as the same value: denying `true` or 4096 also denies `"true"` or
 * `"+0x1000"`, in a list or comma-separated, in the path, and under any other name for the same parameter.
 */
export function withinParameters(rules: ParameterRules, members: Parameters, reading: ParameterReading = {}): boolean {
  if (isUnrestricted(rules)) return true;
  const names = Object.keys(members);
  const listed = listsOf(members, reading);
  for (const name of rules.required) {
    if (listed.some(({ inner }) => inner.has(name))) continue; // each item must have the parameter instead: checked in `itemsWithin`
    if (isMissing(members[name])) return false;
  }
  if (!isPathWithin(rules, reading)) return false;
  if (names.length === 0) return true;
  if (rules.denied.has('*')) return false;
  return (
    areWithin(rules, members, reading, { checksNames: rules.allowed.size > 0 }) &&
    [...(reading.inner ?? [])].every(([name, inner]) => {
      const value = members[name];
      return !isMembers(value) || areWithin(rules, value, reading, { checksNames: checksInnerNames(rules, inner) });
    })
  );
}

/**
 * Returns whether each item of the request's lists is within the rules. An item is checked like the body of a request for that item
 * alone. The names in items are checked against the allowed names only if an allowed name can occur in an item: a rule that allows
 * only `batch_input` allows any item.
 */
export async function itemsWithin(rules: ParameterRules, members: Parameters, reading: ParameterReading): Promise<boolean> {
  if (isUnrestricted(rules)) return true;
  const slice = new TimeSlice(accessTurns);
  for (const { items, inner } of listsOf(members, reading)) {
    const checksNames = checksInnerNames(rules, inner);
    const required = rules.required.filter((name) => inner.has(name));
    for (const item of items) {
      if (slice.isOver) await slice.next();
      if (!isMembers(item)) continue; // the operation rejects such an item
      if (required.some((name) => isMissing(item[name])) || !areWithin(rules, item, reading, { checksNames, isItem: true }))
        return false;
    }
  }
  return true;
}

/** Returns whether a value is denied under one of the names of its parameter. */
export const isValueDenied = ({ denied }: ParameterRules, names: readonly string[], value: ParameterValue): boolean =>
  names.some((name) => denied.get(name)?.some((listed) => mayEqual(listed, value)) === true);

/** A field of items that is only returned to the caller unchanged. */
const echoed = 'reference';

const checksInnerNames = ({ allowed }: ParameterRules, inner: ReadonlySet<string>): boolean =>
  [...inner].some((name) => name !== echoed && allowed.has(name));

const isMissing = (value: unknown): boolean => value === undefined || value === null;

const isMembers = (value: unknown): value is Parameters => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the lists in a request whose items are objects with known names. */
const listsOf = (members: Parameters, { inner = new Map() }: ParameterReading) =>
  [...inner].flatMap(([name, inner]) => {
    const items = members[name];
    return Array.isArray(items) ? [{ items: items as readonly unknown[], inner }] : [];
  });

function areWithin(
  { allowed, denied }: ParameterRules,
  members: Parameters,
  { otherNames }: ParameterReading,
  { checksNames, isItem = false }: { readonly checksNames: boolean; readonly isItem?: boolean },
): boolean {
  const anyName = allowed.has('*');
  for (const name in members) {
    const value = members[name];
    const others = otherNames?.get(name) ?? [];
    for (const each of [name, ...others]) {
      const values = denied.get(each.toLowerCase());
      if (values !== undefined && (values.length === 0 || values.some((listed) => mayEqual(listed, value)))) return false;
    }
    if (!checksNames) continue;
    const values = allowed.get(name.toLowerCase());
    if (values === undefined) {
      if (!anyName && !(isItem && name === echoed)) return false;
      if (!isAllowedAs(allowed, others, value)) return false;
    } else if (values.length > 0 && !values.some((listed) => surelyEquals(listed, value))) return false;
  }
  return true;
}

/**
 * Checks the parameters in the path. Under its other names, a parameter is checked as if it were in the body. Under its own name, it
 * is checked only against listed denied values.
 */
function isPathWithin({ allowed, denied }: ParameterRules, { inPath = {}, otherNames }: ParameterReading): boolean {
  return Object.entries(inPath).every(([name, value]) => {
    const others = otherNames?.get(name) ?? [];
    if (denied.get(name)?.some((listed) => mayEqual(listed, value)) === true) return false;
    const isDenied = others.some((other) => {
      const values = denied.get(other);
      return values !== undefined && (values.length === 0 || values.some((listed) => mayEqual(listed, value)));
    });
    return !isDenied && isAllowedAs(allowed, others, value);
  });
}

/** Returns whether a value is allowed under each other name of its parameter that has a list of allowed values. */
const isAllowedAs = (allowed: ParameterLists, others: readonly string[], value: unknown): boolean =>
  others.every((other) => {
    const values = allowed.get(other);
    return values === undefined || values.length === 0 || values.some((listed) => surelyEquals(listed, value));
  });

/**
 * Compares narrowly, for allowed values. A listed string may have globs at either end, a boolean matches exactly, and a number is
 * compared in its decimal form.
 */
function surelyEquals(listed: ParameterValue, given: unknown): boolean {
  if (typeof listed === 'string') return typeof given === 'string' && globMatches(listed, given);
  if (typeof listed === 'boolean') return given === listed;
  return given === listed || (typeof given === 'string' && String(listed) === given);
}

/**
 * Compares widely, for denied values. Returns whether an endpoint could read `given`, or a part of it, as the listed value. An
 * endpoint may read a list, may read a string as a comma-separated list, and may compare names case-insensitively. The meaning of an
 * object's fields is unknown here, so any non-empty object matches.
 */
function mayEqual(listed: ParameterValue, given: unknown): boolean {
  if (given === undefined || given === null) return false;
  if (listed === '*') return true;
  if (Array.isArray(given)) return given.some((each) => (isScalar(each) ? mayEqualScalar(listed, each) : each !== null));
  return isScalar(given) ? mayEqualScalar(listed, given) : Object.keys(given).length > 0;
}

function mayEqualScalar(listed: ParameterValue, given: ParameterValue): boolean {
  if (typeof given !== 'string') return mayEqualText(listed, given, String(given));
  // Base64 may contain line breaks anywhere.
  const joined = withoutLines(given);
  if (joined !== given && mayEqualText(listed, given, joined)) return true;
  return mayEqualText(listed, given, given) || (typeof listed === 'string' && areSameBytes(withoutLines(listed), joined));
}

function mayEqualText(listed: ParameterValue, given: ParameterValue, written: string): boolean {
  const pattern = normalized(String(listed));
  const text = normalized(written);
  // A mount path may have a slash at either end.
  if (!pattern.includes('*') && withoutSlashes(pattern) === withoutSlashes(text)) return true;
  if (globMatches(pattern, text) || text.split(',').some((part) => globMatches(pattern, part.trim()))) return true;
  const [listedBool, givenBool] = [asBool(listed), asBool(given)];
  if (listedBool !== undefined && listedBool === givenBool) return true;
  const numbers = numbersOf(given);
  return numbersOf(listed).some((number) => numbers.includes(number));
}

/** Returns whether two strings are base64 of the same bytes. Decoders ignore the padding bits of the last character. */
function areSameBytes(one: string, other: string): boolean {
  if (one.length !== other.length || !one.endsWith('=') || !other.endsWith('=')) return false;
  const [first, second] = [one, other].map((text) => Buffer.from(text.slice(-4), 'base64'));
  return one.slice(0, -4) === other.slice(0, -4) && first !== undefined && second !== undefined && first.equals(second);
}

const withoutLines = (text: string): string => text.replace(/[\r\n]/g, '');

const isScalar = (value: unknown): value is ParameterValue =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

const withoutSlashes = (text: string): string => text.replace(/^\/+|\/+$/g, '');
const normalized = (text: string): string => text.trim().toLowerCase();

const trueWords: readonly ParameterValue[] = [true, 1, '1', 't', 'T', 'TRUE', 'true', 'True'];
const falseWords: readonly ParameterValue[] = [false, 0, '0', 'f', 'F', 'FALSE', 'false', 'False', ''];

function asBool(value: ParameterValue): boolean | undefined {
  if (trueWords.includes(value)) return true;
  return falseWords.includes(value) ? false : undefined;
}

/** Returns the numbers that an endpoint could read from a string: as an integer in any base, and as a duration in seconds. */
const numbersOf = (value: ParameterValue): number[] =>
  typeof value === 'string'
    ? [integerOf(value.trim()), secondsOf(value.trim())].filter((number) => !Number.isNaN(number))
    : [Number(value)];

/** Merges the lists of several policies for one path. If one policy lists a parameter with any value, so does the result. */
export function mergedLists(lists: readonly ParameterLists[]): ParameterLists {
  const merged = new Map<string, Set<ParameterValue>>();
  const any = new Set<string>();
  for (const [name, values] of lists.flatMap((list) => [...list])) {
    const present = merged.get(name) ?? new Set();
    merged.set(name, present);
    if (values.length === 0) any.add(name);
    for (const value of values) present.add(value);
  }
  return new Map([...merged].map(([name, values]) => [name, any.has(name) ? [] : [...values]]));
}
