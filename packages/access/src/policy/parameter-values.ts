import { integerOf, secondsOf } from '@transitd/process';
import { globMatches, isSought } from '../values/glob.ts';

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
function surelyEquals(listed: ParameterValue, given: unknown): boolean {
  if (typeof listed === 'string') return typeof given === 'string' && globMatches(listed, given);
  if (typeof listed === 'boolean') return given === listed;
  return given === listed || (typeof given === 'string' && String(listed) === given);
}

/** Most comparisons for one request, or for one item of a request: some ten milliseconds of work, if a list has very many values. */
const comparisonsMax = 1_000_000;
/** Characters of a value that take as long as a comparison. */
const charsPerComparison = 16;
/** A value with another meaning is compared in several spellings. */
const meaningFactor = 4;

/**
 * Compares the values of one request, or of one item, with the values that a rule lists. Once there were too many comparisons, every value
 * counts as denied: callers choose how many values a request has, in how many parts, and under how many spellings of one name.
 */
export class Comparisons {
  #left = comparisonsMax;

  /** @see mayMean */
  mayMean(listed: readonly ParameterValue[], given: unknown, meaning: Meaning | undefined, members: Parameters): boolean {
    if (listed.length === 0) return false;
    const factor = meaning === undefined ? 1 : meaningFactor;
    return !this.#count(listed.length, factor * sizeOf(given)) || mayMean(listed, given, meaning, members);
  }

  /** @see areAllowed */
  areAllowed(listed: readonly ParameterValue[], given: unknown, isSplit: boolean): boolean {
    const isWhole = isSplit || listed.some((each) => typeof each === 'string' && isSought(each));
    return this.#count(listed.length, isWhole ? sizeOf(given) : 1) && areAllowed(listed, given, isSplit);
  }

  /** Returns false if the comparison would take too long. Each listed value, and each given one, also takes time by itself. */
  #count(listed: number, given: number): boolean {
    this.#left -= (listed + 8) * (given + 4);
    return this.#left >= 0;
  }
}

/** Returns the most parts that a value may have, and its characters as further comparisons; infinite if it is not compared. */
function sizeOf(given: unknown): number {
  if (Array.isArray(given))
    return given.length > partsMax ? Number.POSITIVE_INFINITY : given.reduce((sum: number, each) => sum + sizeOf(each), 0);
  if (typeof given !== 'string') return 1;
  if (given.length > comparedCharsMax) return Number.POSITIVE_INFINITY;
  return (given.includes(',') ? Math.min(given.length, partsMax) : 1) + given.length / charsPerComparison;
}

/**
 * Returns whether every part of a value is in a list of allowed values. A list must not be allowed for one of its parts: it names the
 * policies `dev-a` and `admin`, and a pattern is meant for each of them.
 * @param isSplit - the endpoint reads a text as a comma-separated list, and a list part by part
 */
function areAllowed(listed: readonly ParameterValue[], given: unknown, isSplit: boolean): boolean {
  const isAllowed = (part: unknown): boolean => listed.some((each) => surelyEquals(each, part));
  if (!isSplit) return isAllowed(given);
  if (typeof given === 'string') {
    const parts = given.split(',', partsMax + 1);
    return parts.length <= partsMax && parts.every((part) => isAllowed(part.trim()));
  }
  return Array.isArray(given) ? given.length > 0 && given.length <= partsMax && given.every(isAllowed) : isAllowed(given);
}

/**
 * Compares widely, for denied values. Returns whether an endpoint could read `given`, or a part of it, as one of the listed values. An
 * endpoint may read a list, may read a string as a comma-separated list, and may compare names case-insensitively. The meaning of an
 * object's fields is unknown here, so any non-empty object matches.
 */
export function mayEqual(listed: readonly ParameterValue[], given: unknown): boolean {
  if (isMissing(given) || listed.length === 0) return false;
  if (listed.includes('*')) return true;
  if (isScalar(given)) return isAmong(listed, [given]);
  if (!Array.isArray(given)) return Object.keys(given).length > 0;
  const items: readonly unknown[] = given;
  return (
    items.length > partsMax || items.some((each) => each !== null && !isScalar(each)) || isAmong(listed, items.filter(isScalar))
  );
}

/**
 * Compares by meaning, for denied values: as `mayEqual`, also with each value that the operation reads instead of `given` or of a part of
 * it. The listed values may have other spellings too.
 */
function mayMean(listed: readonly ParameterValue[], given: unknown, meaning: Meaning | undefined, members: Parameters): boolean {
  if (mayEqual(listed, given)) return true;
  if (meaning === undefined) return false;
  const spelled = listed.filter((each) => each !== '*').flatMap((each) => [each, ...meaning(each, {}).slice(0, 1)]);
  const meant = partsOf(given).flatMap((part) => [...(part === undefined ? [] : [part]), ...meaning(part, members)]);
  return isAmong(
    spelled.filter((each) => each !== '*'),
    meant,
  );
}

/** Returns the scalars in a member; undefined stands for an omitted one. */
function partsOf(given: unknown): readonly (ParameterValue | undefined)[] {
  if (isMissing(given)) return [undefined];
  return (Array.isArray(given) ? given : [given]).filter(isScalar);
}

/** More parts than any operation reads as a list. A text or a list with more is not compared, and so may equal any value. */
const partsMax = 10_000;
/** The same for the characters of all its texts. Only data is as long. */
const comparedCharsMax = 1024 * 1024;

/** Returns whether an endpoint could read one of the given values as one of the listed ones. */
function isAmong(listed: readonly ParameterValue[], given: readonly ParameterValue[]): boolean {
  const chars = given.reduce((sum: number, each) => sum + (typeof each === 'string' ? each.length : 0), 0);
  const read = chars > comparedCharsMax ? undefined : readingsOf(given);
  return read === undefined || listed.some((each) => isReadAs(each, read));
}

/** What endpoints may read in given values. It is made once, and compared with each listed value. */
interface Readings {
  /** In lower case: the texts, and the parts of those that have commas. */
  readonly texts: readonly string[];
  /** The texts without slashes around them, which the path of a mount may have. */
  readonly bare: readonly string[];
  readonly base64: readonly string[];
  readonly booleans: readonly boolean[];
  readonly numbers: readonly number[];
}

/** Returns undefined for too many parts. */
function readingsOf(given: readonly ParameterValue[]): Readings | undefined {
  const texts: string[] = [];
  const bare: string[] = [];
  for (const text of given.flatMap(writtenForms)) {
    const parts = text.split(',', partsMax + 1);
    if (parts.length > partsMax) return undefined;
    texts.push(text);
    if (parts.length > 1) for (const part of parts) texts.push(part.trim());
    bare.push(withoutSlashes(text));
  }
  return {
    texts,
    bare,
    base64: given.flatMap((each) => base64Bytes(each) ?? []),
    booleans: given.flatMap((each) => asBool(each) ?? []),
    numbers: given.flatMap(numbersOf),
  };
}

/** Base64 may contain line breaks anywhere. */
function writtenForms(given: ParameterValue): readonly string[] {
  if (typeof given !== 'string') return [normalized(String(given))];
  const joined = withoutLines(given);
  return joined === given ? [normalized(given)] : [normalized(given), normalized(joined)];
}

function isReadAs(listed: ParameterValue, { texts, bare, base64, booleans, numbers }: Readings): boolean {
  const pattern = normalized(String(listed));
  const hasGlob = pattern.includes('*');
  if (hasGlob ? texts.some((text) => globMatches(pattern, text)) : texts.includes(pattern)) return true;
  if (!hasGlob && bare.includes(withoutSlashes(pattern))) return true;
  const [bool, bytes] = [asBool(listed), base64Bytes(listed)];
  return (
    (bool !== undefined && booleans.includes(bool)) ||
    (bytes !== undefined && base64.includes(bytes)) ||
    numbersOf(listed).some((number) => numbers.includes(number))
  );
}

/** Returns the same text for all base64 texts of the same bytes: decoders ignore the padding bits of the last character. */
function base64Bytes(value: ParameterValue): string | undefined {
  const text = typeof value === 'string' ? withoutLines(value) : '';
  return text.endsWith('=') ? `${text.slice(0, -4)} ${Buffer.from(text.slice(-4), 'base64').toString('hex')}` : undefined;
}

const [newline, carriageReturn] = [0x0a, 0x0d];

/** Works on the bytes: to remove a million line breaks from a string takes a tenth of a second. */
function withoutLines(text: string): string {
  if (!/[\r\n]/.test(text)) return text;
  const bytes = Buffer.from(text);
  let length = 0;
  for (const byte of bytes) {
    if (byte === newline || byte === carriageReturn) continue;
    bytes[length] = byte;
    length += 1;
  }
  return bytes.toString('utf8', 0, length);
}

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
