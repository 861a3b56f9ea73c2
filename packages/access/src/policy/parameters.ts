import { accessTurns, TimeSlice } from '@transitd/event-loop';
import { Comparisons, isMissing, type Meaning, mayEqual, type Parameters, type ParameterValue } from './parameter-values.ts';

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
  /** Parameters on which it depends whether a change takes place. */
  readonly conditions?: ReadonlySet<string> | undefined;
}

/** Returns whether the rules restrict nothing. */
export const isUnrestricted = ({ required, allowed, denied }: ParameterRules): boolean =>
  required.length === 0 && allowed.size === 0 && denied.size === 0;

/** What the rules refuse: the list of the rule with the name of the parameter, such as `denied_parameters.type`. */
export interface ParameterRefusal {
  readonly constraint: string;
  /** A name that the operation does not declare, and so may be anything. */
  readonly given?: readonly string[] | undefined;
}

const refusalBy = (list: 'allowed' | 'denied' | 'required', name: string): ParameterRefusal => ({
  constraint: `${list}_parameters.${name}`,
});

/** The refusal of a parameter that is not among the allowed ones. */
const notAllowed = (name: string, { meanings, innerMeanings }: ParameterReading): ParameterRefusal =>
  meanings?.has(name) === true || innerMeanings?.has(name) === true
    ? refusalBy('allowed', name)
    : { constraint: 'allowed_parameters', given: [name] };

/**
 * Returns what refuses a request's parameters; undefined if they are within the rules. `refusedItem` checks the items of lists. Allowed
 * values match narrowly, and so must every part of a list, which may be written as one comma-separated text. Denied values match every
 * form that an endpoint reads as the same value: denying `true` or 4096 also denies `"true"` or `"+0x1000"`, in a list or comma-separated,
 * in the path, and under any other name for the same parameter. Denying the default denies omitting the parameter.
 */
export function refusedParameter(
  rules: ParameterRules,
  members: Parameters,
  reading: ParameterReading = {},
): ParameterRefusal | undefined {
  if (isUnrestricted(rules)) return undefined;
  const listed = listsOf(members, reading);
  for (const name of rules.required) {
    if (listed.some(({ inner }) => inner.has(name))) continue; // each item must have the parameter instead: checked in `refusedItem`
    if (isMissing(members[name])) return refusalBy('required', name);
  }
  const comparisons = new Comparisons();
  const outside = refusedInPath(rules, reading, comparisons) ?? refusedOmission(rules, members, reading, comparisons);
  if (outside !== undefined || Object.keys(members).length === 0) return outside;
  if (rules.denied.has('*')) return refusalBy('denied', '*');
  const refused = refusedMember(rules, members, reading, { comparisons, checksNames: rules.allowed.size > 0 });
  if (refused !== undefined) return refused;
  for (const [name, inner] of reading.inner ?? []) {
    const value = members[name];
    if (!isMembers(value)) continue;
    const checksNames = checksInnerNames(rules, inner);
    const refused = refusedMember(rules, value, reading, { comparisons, checksNames, isInner: true });
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** Returns what refuses the conditions of a request; undefined if they are within the rules. Other parameters are not considered. */
export function refusedCondition(
  { required, allowed, denied }: ParameterRules,
  members: Parameters,
  reading: ParameterReading = {},
): ParameterRefusal | undefined {
  const isCondition = (name: string): boolean => reading.conditions?.has(name) === true;
  const about = (lists: ParameterLists): ParameterLists => new Map([...lists].filter(([name]) => isCondition(name)));
  const conditions = Object.fromEntries(Object.entries(members).filter(([name]) => isCondition(name)));
  return refusedParameter(
    { required: required.filter(isCondition), allowed: about(allowed), denied: about(denied) },
    conditions,
    reading,
  );
}

/**
 * Returns what refuses an item of the request's lists; undefined if each item is within the rules. An item is checked like the body of a
 * request for that item alone. The names in items are checked against the allowed names only if an allowed name can occur in an item: a
 * rule that allows only `batch_input` allows any item. Values are always checked against those allowed under another name.
 */
export async function refusedItem(
  rules: ParameterRules,
  members: Parameters,
  reading: ParameterReading,
): Promise<ParameterRefusal | undefined> {
  if (isUnrestricted(rules)) return undefined;
  const slice = new TimeSlice(accessTurns);
  for (const { items, inner } of listsOf(members, reading)) {
    const checksNames = checksInnerNames(rules, inner);
    const required = rules.required.filter((name) => inner.has(name));
    for (const item of items) {
      if (slice.isOver) await slice.next();
      if (!isMembers(item)) continue; // the operation rejects such an item
      const absent = required.find((name) => isMissing(item[name]));
      if (absent !== undefined) return refusalBy('required', absent);
      const comparisons = new Comparisons();
      const refused =
        refusedMember(rules, item, reading, { comparisons, checksNames, isItem: true }) ??
        refusedOmission(rules, item, reading, comparisons, inner);
      if (refused !== undefined) return refused;
    }
  }
  return undefined;
}

/** Returns the first of the names of a parameter under which its value is denied. */
export const deniedName = ({ denied }: ParameterRules, names: readonly string[], value: ParameterValue): string | undefined =>
  names.find((name) => mayEqual(denied.get(name) ?? [], value));

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
  readonly comparisons: Comparisons;
  readonly checksNames: boolean;
  /** Whether the members are in a nested object of the body. */
  readonly isInner?: boolean;
  /** Whether the members are in an item of a list in the body. */
  readonly isItem?: boolean;
}

/** Returns what refuses one of the members; undefined if all are within the rules. */
function refusedMember(
  { allowed, denied }: ParameterRules,
  members: Parameters,
  reading: ParameterReading,
  { comparisons, checksNames, isInner = false, isItem = false }: Checked,
): ParameterRefusal | undefined {
  const { otherNames, meanings, innerMeanings, split = new Set() } = reading;
  const anyName = allowed.has('*');
  const meaningOf = isInner || isItem ? innerMeanings : meanings;
  for (const name in members) {
    const value = members[name];
    const others = otherNames?.get(name) ?? [];
    for (const each of [name, ...others]) {
      const values = denied.get(each.toLowerCase());
      if (values === undefined) continue;
      if (values.length === 0 || comparisons.mayMean(values, value, meaningOf?.get(name), members))
        return refusalBy('denied', each.toLowerCase());
    }
    const values = allowed.get(name.toLowerCase());
    if (values === undefined) {
      if (checksNames && !anyName && !(isItem && name === echoed)) return notAllowed(name, reading);
      const other = notAllowedAs(allowed, others, value, split.has(name), comparisons);
      if (other !== undefined) return refusalBy('allowed', other);
    } else if (checksNames && values.length > 0 && !comparisons.areAllowed(values, value, split.has(name)))
      return refusalBy('allowed', name.toLowerCase());
  }
  return undefined;
}

/**
 * Checks the parameters in the path. Under its other names, a parameter is checked as if it were in the body. Under its own name, it
 * is checked only against listed denied values.
 */
function refusedInPath(
  { allowed, denied }: ParameterRules,
  { inPath = {}, otherNames, meanings }: ParameterReading,
  comparisons: Comparisons,
): ParameterRefusal | undefined {
  for (const [name, value] of Object.entries(inPath)) {
    const others = otherNames?.get(name) ?? [];
    const matches = (listed: readonly ParameterValue[] = []): boolean =>
      comparisons.mayMean(listed, value, meanings?.get(name), inPath);
    if (matches(denied.get(name))) return refusalBy('denied', name);
    const deniedAs = others.find((other) => {
      const values = denied.get(other);
      return values !== undefined && (values.length === 0 || matches(values));
    });
    if (deniedAs !== undefined) return refusalBy('denied', deniedAs);
    const other = notAllowedAs(allowed, others, value, false, comparisons);
    if (other !== undefined) return refusalBy('allowed', other);
  }
  return undefined;
}

/**
 * Returns the omitted parameter whose default is denied; undefined if there is none. A list without values denies only a parameter that is
 * present. A parameter that items have is not checked beside the items, because it has no effect there.
 * @param inner - the parameters of an item; undefined for the body
 */
function refusedOmission(
  { denied }: ParameterRules,
  members: Parameters,
  reading: ParameterReading,
  comparisons: Comparisons,
  inner?: ReadonlySet<string>,
): ParameterRefusal | undefined {
  if (denied.size === 0) return undefined;
  const { inPath = {}, otherNames, meanings, innerMeanings } = reading;
  const lists = inner === undefined ? listsOf(members, reading) : [];
  for (const [name, values] of denied) {
    const names = [name, ...(otherNames?.get(name) ?? [])];
    if (names.some((each) => !isMissing(members[each]) || each in inPath || lists.some(({ inner }) => inner.has(each)))) continue;
    if (inner !== undefined && !inner.has(name)) continue;
    const meaning = names.flatMap((each) => (inner === undefined ? meanings : innerMeanings)?.get(each) ?? []);
    if (meaning.some((each) => comparisons.mayMean(values, undefined, each, members))) return refusalBy('denied', name);
  }
  return undefined;
}

/** Returns the other name of a parameter whose list of allowed values does not have the value; undefined if there is none. */
const notAllowedAs = (
  allowed: ParameterLists,
  others: readonly string[],
  value: unknown,
  isSplit: boolean,
  comparisons: Comparisons,
): string | undefined =>
  others.find((other) => {
    const values = allowed.get(other);
    return values !== undefined && values.length > 0 && !comparisons.areAllowed(values, value, isSplit);
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
