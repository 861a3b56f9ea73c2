import { durationSeconds } from './duration.ts';

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
 * widely, as the endpoints read values themselves: what is denied as `true` or 4096 is denied as `"true"` or `"4096"` too.
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

/** Whether an endpoint could take `given` for what is listed. */
function mayEqual(listed: ParameterValue, given: unknown): boolean {
  if (typeof given !== 'string' && typeof given !== 'number' && typeof given !== 'boolean') return false;
  if (globMatches(String(listed), String(given))) return true;
  const [listedBool, givenBool] = [asBool(listed), asBool(given)];
  if (listedBool !== undefined && listedBool === givenBool) return true;
  const numbers = numbersOf(given);
  return numbersOf(listed).some((number) => numbers.includes(number));
}

const trueWords: readonly ParameterValue[] = [true, 1, '1', 't', 'T', 'TRUE', 'true', 'True'];
const falseWords: readonly ParameterValue[] = [false, 0, '0', 'f', 'F', 'FALSE', 'false', 'False', ''];

function asBool(value: ParameterValue): boolean | undefined {
  if (trueWords.includes(value)) return true;
  return falseWords.includes(value) ? false : undefined;
}

/** Every number that an endpoint could read here: decimal, with a prefix for its base, octal as `010`, a duration. */
function numbersOf(value: ParameterValue): number[] {
  if (typeof value !== 'string') return [Number(value)];
  const numbers = /^[+-]?\w+(?:\.\d+)?$/.test(value) ? [Number(value)] : [];
  if (/^[+-]?0[0-7]+$/.test(value)) numbers.push(Number.parseInt(value, 8));
  const seconds = durationSeconds(value);
  if (seconds !== undefined) numbers.push(seconds);
  return numbers.filter((number) => !Number.isNaN(number));
}

/** `*` at either end of `pattern` stands for any text; anywhere else for itself. */
function globMatches(pattern: string, text: string): boolean {
  if (pattern === '*') return true;
  const [front, back] = [pattern.startsWith('*'), pattern.length > 1 && pattern.endsWith('*')];
  const core = pattern.slice(front ? 1 : 0, back ? -1 : undefined);
  if (front && back) return text.includes(core);
  if (front) return text.endsWith(core);
  return back ? text.startsWith(core) : text === core;
}

/** Two policies' lists for one path, taken together: any value where either list says so. */
export function mergedLists(one: ParameterLists, other: ParameterLists): ParameterLists {
  if (one.size === 0) return other;
  const merged = new Map(one);
  for (const [name, values] of other) {
    const present = merged.get(name);
    merged.set(name, present === undefined ? values : present.length === 0 || values.length === 0 ? [] : [...present, ...values]);
  }
  return merged;
}
