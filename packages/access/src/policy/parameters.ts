import { accessTurns, TimeSlice } from '@transitd/event-loop';
import {
  areAllowed,
  isMissing,
  type Meaning,
  mayEqual,
  mayMean,
  type Parameters,
  type ParameterValue,
} from './parameter-values.ts';

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

/** How an operation reads parameters that are not top-level fields of the body. */
export interface ParameterReading {
  /** Parameters in the path, by name. */
  readonly inPath?: Parameters | undefined;
  /** Other names of a parameter for the same value, by its name. */
  readonly otherNames?: ReadonlyMap<string, readonly string[]> | undefined;
  /** For each field that is an object or a list of objects: the parameter names in these objects. */
  readonly inner?: ReadonlyMap<string, ReadonlySet<string>> | undefined;
  /** Names of the parameters, also of those in `inner`, that are read as a list of texts, or as one comma-separated text. */
  readonly split?: ReadonlySet<string> | undefined;
  /** How the values of parameters are read, by name; absent for parameters whose values have no other spelling. */
  readonly meanings?: ReadonlyMap<string, Meaning> | undefined;
  /** The same for parameters in the objects of `inner`. */
  readonly innerMeanings?: ReadonlyMap<string, Meaning> | undefined;
}

/** Returns whether the rules restrict nothing. */
export const isUnrestricted = ({ required, allowed, denied }: ParameterRules): boolean =>
  required.length === 0 && allowed.size === 0 && denied.size === 0;

/**
 * Returns whether a request's parameters are within the rules; `itemsWithin` checks the items of lists. Allowed values match narrowly, and
 * so must every part of a list, which may be written as one comma-separated text. Denied values match every form that an endpoint reads as
 * the same value: denying `true` or 4096 also denies `"true"` or `"+0x1000"`, in a list or comma-separated, in the path, and under any
 * other name for the same parameter. Denying the default denies omitting the parameter.
 */
export function withinParameters(rules: ParameterRules, members: Parameters, reading: ParameterReading = {}): boolean {
  if (isUnrestricted(rules)) return true;
  const names = Object.keys(members);
  const listed = listsOf(members, reading);
  for (const name of rules.required) {
    if (listed.some(({ inner }) => inner.has(name))) continue; // each item must have the parameter instead: checked in `itemsWithin`
    if (isMissing(members[name])) return false;
  }
  if (!isPathWithin(rules, reading) || !areOmittedWithin(rules, members, reading)) return false;
  if (names.length === 0) return true;
  if (rules.denied.has('*')) return false;
  return (
    areWithin(rules, members, reading, { checksNames: rules.allowed.size > 0 }) &&
    [...(reading.inner ?? [])].every(([name, inner]) => {
      const value = members[name];
      return (
        !isMembers(value) || areWithin(rules, value, reading, { checksNames: checksInnerNames(rules, inner), isInner: true })
      );
    })
  );
}

/**
 * Returns whether each item of the request's lists is within the rules. An item is checked like the body of a request for that item
 * alone. The names in items are checked against the allowed names only if an allowed name can occur in an item: a rule that allows
 * only `batch_input` allows any item. Values are always checked against those allowed under another name.
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
      if (!areOmittedWithin(rules, item, reading, inner)) return false;
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

const isMembers = (value: unknown): value is Parameters => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the lists in a request whose items are objects with known names. */
const listsOf = (members: Parameters, { inner = new Map() }: ParameterReading) =>
  [...inner].flatMap(([name, inner]) => {
    const items = members[name];
    return Array.isArray(items) ? [{ items: items as readonly unknown[], inner }] : [];
  });

interface Checked {
  readonly checksNames: boolean;
  /** Whether the members are in a nested object of the body. */
  readonly isInner?: boolean;
  /** Whether the members are in an item of a list in the body. */
  readonly isItem?: boolean;
}

function areWithin(
  { allowed, denied }: ParameterRules,
  members: Parameters,
  { otherNames, meanings, innerMeanings, split = new Set() }: ParameterReading,
  { checksNames, isInner = false, isItem = false }: Checked,
): boolean {
  const anyName = allowed.has('*');
  const meaningOf = isInner || isItem ? innerMeanings : meanings;
  for (const name in members) {
    const value = members[name];
    const others = otherNames?.get(name) ?? [];
    for (const each of [name, ...others]) {
      const values = denied.get(each.toLowerCase());
      if (values === undefined) continue;
      if (values.length === 0 || values.some((listed) => mayMean(listed, value, meaningOf?.get(name), members))) return false;
    }
    const values = allowed.get(name.toLowerCase());
    if (values === undefined) {
      if (checksNames && !anyName && !(isItem && name === echoed)) return false;
      if (!isAllowedAs(allowed, others, value, split.has(name))) return false;
    } else if (checksNames && values.length > 0 && !areAllowed(values, value, split.has(name))) return false;
  }
  return true;
}

/**
 * Checks the parameters in the path. Under its other names, a parameter is checked as if it were in the body. Under its own name, it
 * is checked only against listed denied values.
 */
function isPathWithin({ allowed, denied }: ParameterRules, { inPath = {}, otherNames, meanings }: ParameterReading): boolean {
  return Object.entries(inPath).every(([name, value]) => {
    const others = otherNames?.get(name) ?? [];
    const matches = (listed: ParameterValue): boolean => mayMean(listed, value, meanings?.get(name), inPath);
    if (denied.get(name)?.some(matches) === true) return false;
    const isDenied = others.some((other) => {
      const values = denied.get(other);
      return values !== undefined && (values.length === 0 || values.some(matches));
    });
    return !isDenied && isAllowedAs(allowed, others, value, false);
  });
}

/**
 * Returns whether no omitted parameter has a denied default. A list without values denies only a parameter that is present. A parameter
 * that items have is not checked beside the items, because it has no effect there.
 * @param inner - the parameters of an item; undefined for the body
 */
function areOmittedWithin(
  { denied }: ParameterRules,
  members: Parameters,
  reading: ParameterReading,
  inner?: ReadonlySet<string>,
): boolean {
  if (denied.size === 0) return true;
  const { inPath = {}, otherNames, meanings, innerMeanings } = reading;
  const lists = inner === undefined ? listsOf(members, reading) : [];
  for (const [name, values] of denied) {
    const names = [name, ...(otherNames?.get(name) ?? [])];
    if (names.some((each) => !isMissing(members[each]) || each in inPath || lists.some(({ inner }) => inner.has(each)))) continue;
    if (inner !== undefined && !inner.has(name)) continue;
    const meaning = names.flatMap((each) => (inner === undefined ? meanings : innerMeanings)?.get(each) ?? []);
    if (values.some((listed) => meaning.some((each) => mayMean(listed, undefined, each, members)))) return false;
  }
  return true;
}

/** Returns whether a value is allowed under each other name of its parameter that has a list of allowed values. */
const isAllowedAs = (allowed: ParameterLists, others: readonly string[], value: unknown, isSplit: boolean): boolean =>
  others.every((other) => {
    const values = allowed.get(other);
    return values === undefined || values.length === 0 || areAllowed(values, value, isSplit);
  });

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
