import { integerOf, secondsOf } from './written-number.ts';

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

/**
 * Whether a request with these members is within the rules. A list of allowed values is read narrowly and a list of denied ones
 * widely, as the endpoints read values themselves: what is denied as `true` or 4096 is denied as `"true"` or `"+0x1000"` too, in a list or with commas.
 */
export function withinParameters({ required, allowed, denied }: ParameterRules, members: Parameters): boolean {
  for (const name of required) if (members[name] === undefined || members[name] === null) return false;
  const names = Object.keys(members);
  if (names.length === 0) return true;
  if (denied.has('*')) return false;
  for (const name of names) {
    const values = denied.get(name.toLowerCase());
    if (values !== undefined && (values.length === 0 || values.some((value) => mayEqual(value, members[name])))) return false;
  }
  if (allowed.size === 0) return true;
  const anyName = allowed.has('*');
  return names.every((name) => {
    const values = allowed.get(name.toLowerCase());
    if (values === undefined) return anyName;
    return values.length === 0 || values.some((value) => surelyEquals(value, members[name]));
  });
}

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
  const pattern = bare(String(listed));
  const text = bare(String(given));
  if (globMatches(pattern, text) || text.split(',').some((part) => globMatches(pattern, part.trim()))) return true;
  const [listedBool, givenBool] = [asBool(listed), asBool(given)];
  if (listedBool !== undefined && listedBool === givenBool) return true;
  const numbers = numbersOf(given);
  return numbersOf(listed).some((number) => numbers.includes(number));
}

const isScalar = (value: unknown): value is ParameterValue =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

const bare = (text: string): string => text.trim().toLowerCase();

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

/** `*` at either end of `pattern` stands for any text; anywhere else for itself. */
export function globMatches(pattern: string, text: string): boolean {
  if (pattern === '*') return true;
  const [front, back] = [pattern.startsWith('*'), pattern.length > 1 && pattern.endsWith('*')];
  const core = pattern.slice(front ? 1 : 0, back ? -1 : undefined);
  if (front && back) return text.includes(core);
  if (front) return text.endsWith(core);
  return back ? text.startsWith(core) : text === core;
}

/** Lists of several policies for one path, taken together: any value where one of the lists says so. */
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
