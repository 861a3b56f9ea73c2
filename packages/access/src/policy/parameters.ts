import { TimeSlice } from '../scheduling/time-slice.ts';
import { secondsOf } from '../values/duration.ts';
import { globMatches } from '../values/glob.ts';
import { integerOf } from '../values/integer.ts';

/** A value that a policy names for a parameter. */
export type ParameterValue = string | number | boolean;

/** Values by the parameter's name in lower case; an empty list stands for any value. */
export type ParameterLists = ReadonlyMap<string, readonly ParameterValue[]>;

/** What a rule asks of a request's members. */
export interface ParameterRules {
  /** In lower case. */
  readonly required: readonly string[];
  /** Empty: every member is allowed. `*` stands for every name. */
  readonly allowed: ParameterLists;
  readonly denied: ParameterLists;
}

/** The members of a request's body, without a prototype. */
export type Parameters = Readonly<Record<string, unknown>>;

/** How the operation reads a request, beyond the members of its body. */
export interface ParameterReading {
  /** Values that the path holds, by the name under which the operation reads them. */
  readonly inPath?: Parameters | undefined;
  /** By a name, the other names under which the operation reads the same value. */
  readonly otherNames?: ReadonlyMap<string, readonly string[]> | undefined;
  /** By the name of a member, the names that it has inside itself: of an object, or of each item of a list. */
  readonly inner?: ReadonlyMap<string, ReadonlySet<string>> | undefined;
}

export const isUnrestricted = ({ required, allowed, denied }: ParameterRules): boolean =>
  required.length === 0 && allowed.size === 0 && denied.size === 0;

/**
 * Whether a request with these members is within the rules; items of lists are left to `itemsWithin`. A list of allowed values is read narrowly
 * and a list of denied ones widely, as the endpoints read values themselves: what is denied as `true` or 4096 is denied as `"true"` or `"+0x1000"` too,
 * in a list or with commas, in the path, and under any other name that the operation reads as the same.
 */
export function withinParameters(rules: ParameterRules, members: Parameters, reading: ParameterReading = {}): boolean {
  if (isUnrestricted(rules)) return true;
  const names = Object.keys(members);
  const listed = listsOf(members, reading);
  for (const name of rules.required) {
    if (listed.some(({ inner }) => inner.has(name))) continue; // asked of each item
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
 * Whether each item of the request's lists is within the rules, as the body of a request for that item alone would be. Its names are compared with the
 * allowed ones only where those name one that an item can have: whoever allows `batch_input` and nothing that is inside it allows any item.
 */
export async function itemsWithin(rules: ParameterRules, members: Parameters, reading: ParameterReading): Promise<boolean> {
  if (isUnrestricted(rules)) return true;
  const slice = new TimeSlice();
  for (const { items, inner } of listsOf(members, reading)) {
    const checksNames = checksInnerNames(rules, inner);
    const required = rules.required.filter((name) => inner.has(name));
    for (const item of items) {
      if (slice.isOver) await slice.next();
      if (!isMembers(item)) continue; // the operation refuses it
      if (required.some((name) => isMissing(item[name])) || !areWithin(rules, item, reading, { checksNames, isItem: true }))
        return false;
    }
  }
  return true;
}

/** Whether a value that the operation uses under a name is denied there, or under another name for the same. */
export const isValueDenied = ({ denied }: ParameterRules, names: readonly string[], value: ParameterValue): boolean =>
  names.some((name) => denied.get(name)?.some((listed) => mayEqual(listed, value)) === true);

/** Comes back to the caller and is not used otherwise. */
const echoed = 'reference';

const checksInnerNames = ({ allowed }: ParameterRules, inner: ReadonlySet<string>): boolean =>
  [...inner].some((name) => name !== echoed && allowed.has(name));

const isMissing = (value: unknown): boolean => value === undefined || value === null;

const isMembers = (value: unknown): value is Parameters => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The lists in a request whose items have names. */
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

/** A value in the path counts under its other names as if the body held it; under its own name where the rule lists values. */
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

/** Whether no other name for a value has a list of allowed values without it. */
const isAllowedAs = (allowed: ParameterLists, others: readonly string[], value: unknown): boolean =>
  others.every((other) => {
    const values = allowed.get(other);
    return values === undefined || values.length === 0 || values.some((listed) => surelyEquals(listed, value));
  });

/** A text with globs at either end, a boolean exactly, a number by its value. */
function surelyEquals(listed: ParameterValue, given: unknown): boolean {
  if (typeof listed === 'string') return typeof given === 'string' && globMatches(listed, given);
  if (typeof listed === 'boolean') return given === listed;
  return given === listed || (typeof given === 'string' && String(listed) === given);
}

/**
 * Whether an endpoint could take `given`, or a part of it, for what is listed: it may read a list of texts, or a text as a list with
 * commas, and names without case. What is in an object has no name here, so any that holds something is taken for it.
 */
function mayEqual(listed: ParameterValue, given: unknown): boolean {
  if (given === undefined || given === null) return false;
  if (listed === '*') return true;
  if (Array.isArray(given)) return given.some((each) => (isScalar(each) ? mayEqualScalar(listed, each) : each !== null));
  return isScalar(given) ? mayEqualScalar(listed, given) : Object.keys(given).length > 0;
}

function mayEqualScalar(listed: ParameterValue, given: ParameterValue): boolean {
  if (typeof given !== 'string') return mayEqualText(listed, given, String(given));
  // Base64 may be broken into lines anywhere.
  const joined = withoutLines(given);
  if (joined !== given && mayEqualText(listed, given, joined)) return true;
  return mayEqualText(listed, given, given) || (typeof listed === 'string' && areSameBytes(withoutLines(listed), joined));
}

function mayEqualText(listed: ParameterValue, given: ParameterValue, written: string): boolean {
  const pattern = normalized(String(listed));
  const text = normalized(written);
  // A mount may be named with a slash at either end.
  if (!pattern.includes('*') && withoutSlashes(pattern) === withoutSlashes(text)) return true;
  if (globMatches(pattern, text) || text.split(',').some((part) => globMatches(pattern, part.trim()))) return true;
  const [listedBool, givenBool] = [asBool(listed), asBool(given)];
  if (listedBool !== undefined && listedBool === givenBool) return true;
  const numbers = numbersOf(given);
  return numbersOf(listed).some((number) => numbers.includes(number));
}

/** Whether two texts are base64 of the same bytes: the bits of the last character that stand for no byte may be any. */
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

/** Every number that an endpoint could read here: a whole one in any base, a duration in whole seconds. */
const numbersOf = (value: ParameterValue): number[] =>
  typeof value === 'string'
    ? [integerOf(value.trim()), secondsOf(value.trim())].filter((number) => !Number.isNaN(number))
    : [Number(value)];

/** Lists of several policies for one path, taken combined: any value where one of the lists says so. */
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
