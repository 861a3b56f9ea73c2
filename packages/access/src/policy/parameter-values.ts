import { integerOf, secondsOf } from '@transitd/process';
import { globMatches } from '../values/glob.ts';

/** A parameter value that a policy lists. */
export type ParameterValue = string | number | boolean;

/** The fields of a request's body; an object without a prototype. */
export type Parameters = Readonly<Record<string, unknown>>;

/**
 * Returns the values that an operation may read instead of the written one, the canonical spelling first; empty if the written value has
 * no other meaning.
 * @param value - undefined if the parameter was omitted
 * @param members - the other parameters, which the meaning may depend on
 */
export type Meaning = (value: ParameterValue | undefined, members: Parameters) => readonly ParameterValue[];

export const isMissing = (value: unknown): value is null | undefined => value === undefined || value === null;

/**
 * Compares narrowly, for allowed values. A listed string may have globs at either end, a boolean matches exactly, and a number is
 * compared in its decimal form.
 */
export function surelyEquals(listed: ParameterValue, given: unknown): boolean {
  if (typeof listed === 'string') return typeof given === 'string' && globMatches(listed, given);
  if (typeof listed === 'boolean') return given === listed;
  return given === listed || (typeof given === 'string' && String(listed) === given);
}

/**
 * Returns whether every part of a value is in a list of allowed values. A list must not be allowed for one of its parts: it names the
 * policies `dev-a` and `admin`, and a pattern is meant for each of them.
 * @param isSplit - the endpoint reads a text as a comma-separated list, and a list part by part
 */
export function areAllowed(listed: readonly ParameterValue[], given: unknown, isSplit: boolean): boolean {
  const isAllowed = (part: unknown): boolean => listed.some((each) => surelyEquals(each, part));
  if (!isSplit) return isAllowed(given);
  if (typeof given === 'string') {
    const parts = given.split(',', partsMax + 1);
    return parts.length <= partsMax && parts.every((part) => isAllowed(part.trim()));
  }
  return Array.isArray(given) ? given.length > 0 && given.every(isAllowed) : isAllowed(given);
}

/**
 * Compares widely, for denied values. Returns whether an endpoint could read `given`, or a part of it, as the listed value. An
 * endpoint may read a list, may read a string as a comma-separated list, and may compare names case-insensitively. The meaning of an
 * object's fields is unknown here, so any non-empty object matches.
 */
export function mayEqual(listed: ParameterValue, given: unknown): boolean {
  if (given === undefined || given === null) return false;
  if (listed === '*') return true;
  if (Array.isArray(given)) return given.some((each) => (isScalar(each) ? mayEqualScalar(listed, each) : each !== null));
  return isScalar(given) ? mayEqualScalar(listed, given) : Object.keys(given).length > 0;
}

/**
 * Compares by meaning, for denied values: as `mayEqual`, also with each value that the operation reads instead of `given` or of a part of
 * it. The listed value may have another spelling too.
 */
export function mayMean(listed: ParameterValue, given: unknown, meaning: Meaning | undefined, members: Parameters): boolean {
  if (mayEqual(listed, given)) return true;
  if (meaning === undefined || listed === '*') return false;
  const [same] = meaning(listed, {});
  const spelled = same === undefined || same === '*' ? [listed] : [listed, same];
  const isListed = (value: ParameterValue | undefined): boolean => spelled.some((each) => mayEqual(each, value));
  return partsOf(given).some((part) => isListed(part) || meaning(part, members).some(isListed));
}

/** Returns the scalars in a member; undefined stands for an omitted one. */
function partsOf(given: unknown): readonly (ParameterValue | undefined)[] {
  if (isMissing(given)) return [undefined];
  return (Array.isArray(given) ? given : [given]).filter(isScalar);
}

function mayEqualScalar(listed: ParameterValue, given: ParameterValue): boolean {
  if (typeof given !== 'string') return mayEqualText(listed, given, String(given));
  // Base64 may contain line breaks anywhere.
  const joined = withoutLines(given);
  if (joined !== given && mayEqualText(listed, given, joined)) return true;
  return mayEqualText(listed, given, given) || (typeof listed === 'string' && areSameBytes(withoutLines(listed), joined));
}

/** More parts than any operation reads as a list. A text with more is not compared part by part, and so may equal any value. */
const partsMax = 10_000;

function mayEqualText(listed: ParameterValue, given: ParameterValue, written: string): boolean {
  const pattern = normalized(String(listed));
  const text = normalized(written);
  // A mount path may have a slash at either end.
  if (!pattern.includes('*') && withoutSlashes(pattern) === withoutSlashes(text)) return true;
  const parts = text.split(',', partsMax + 1);
  if (parts.length > partsMax) return true;
  if (globMatches(pattern, text) || parts.some((part) => globMatches(pattern, part.trim()))) return true;
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

/** Takes linear time: a regular expression for the end would be tried again at each slash of the text. */
function withoutSlashes(text: string): string {
  let [begin, end] = [0, text.length];
  while (text[begin] === '/') begin += 1;
  while (end > begin && text[end - 1] === '/') end -= 1;
  return text.slice(begin, end);
}

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
