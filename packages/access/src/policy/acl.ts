import { accessTurns, runAtOnce, runInSlices, type Steps, TimeSlice } from '@transitd/event-loop';
import type { PolicyRule, RefusedBy } from '@transitd/storage-fsm';
import { bitOf, type Capability, capabilities, namesOf } from './capability.ts';
import type { Parameters, ParameterValue } from './parameter-values.ts';
import {
  deniedName,
  isUnrestricted,
  mergedLists,
  type ParameterReading,
  type ParameterRefusal,
  refusedCondition,
  refusedItem,
  refusedParameter,
} from './parameters.ts';
import type { PathRule, Policy, Rule } from './policy.ts';

/** The rules of all policies of a token for one path or pattern, merged into one. */
interface MergedRule extends Rule {
  /** The path or pattern, as policies write it. */
  readonly path: string;
  readonly of: readonly OwnRule[];
}

/** The rule of one policy. */
interface OwnRule {
  readonly policy: string;
  readonly rule: Rule;
}

/** A rule for a pattern, with the properties that rank it among several matching patterns. */
interface PatternRule {
  /** The pattern without a trailing `*`. */
  readonly pattern: string;
  /** Whether the pattern ended in `*` and so matches every path that begins with it. */
  readonly prefix: boolean;
  /** Offset of the first `+` or `*`. */
  readonly firstWildcard: number;
  /** Number of segments that are `+`. */
  readonly wildcards: number;
  readonly rule: MergedRule;
}

/** A pattern with at least one segment `+`. */
interface SegmentsRule extends PatternRule {
  readonly segments: readonly string[];
}

/**
 * Maximum number of cached decisions, and maximum length of a cached path. Callers may request any path, so memory is bounded only by
 * both together.
 */
const [decisionsMax, decisionCharsMax] = [256, 128];
/** Maximum memory of the cached decisions of one Acl, in bytes. */
export const decisionsBytesMax = decisionsMax * (2 * decisionCharsMax + 64);

/** Rules of several policies. Rules for the same path are merged into one. */
interface Compiled {
  readonly exact: ReadonlyMap<string, MergedRule>;
  readonly prefixes: ReadonlyMap<string, MergedRule>;
  readonly segments: readonly SegmentsRule[];
}

function* compileSteps(policies: readonly Policy[], names: readonly string[]): Steps<Compiled> {
  const rules = {
    exact: new Map<string, OwnRule[]>(),
    prefix: new Map<string, OwnRule[]>(),
    segments: new Map<string, OwnRule[]>(),
  };
  for (const [at, policy] of policies.entries()) {
    for (const { path, rule } of policy) {
      yield;
      const own = { policy: names[at] ?? '', rule };
      const [byPath, key] = hasSegmentWildcard(path)
        ? [rules.segments, path]
        : path.endsWith('*')
          ? [rules.prefix, path.slice(0, -1)]
          : [rules.exact, path];
      const present = byPath.get(key);
      if (present === undefined) byPath.set(key, [own]);
      else present.push(own);
    }
  }
  const exact = new Map<string, MergedRule>();
  const prefixes = new Map<string, MergedRule>();
  const segments: SegmentsRule[] = [];
  for (const [from, to, end] of [
    [rules.exact, exact, ''],
    [rules.prefix, prefixes, '*'],
  ] as const) {
    for (const [path, all] of from) {
      yield;
      to.set(path, merged(path + end, all));
    }
  }
  for (const [path, all] of rules.segments) {
    yield;
    segments.push(segmentsRule(merged(path, all)));
  }
  return { exact, prefixes, segments };
}

/** The segments of a path that are a case-insensitive name. A name of several segments is the end of the path. */
export interface NamePlace {
  /** Index of its first segment. */
  readonly first: number;
  readonly count: number;
}

/**
 * An access control list: several policies compiled into one. Exactly one rule decides about a path, since rules for the same path
 * are merged. It is immutable.
 */
export class Acl {
  /** Whether a rule denies a path explicitly. */
  readonly hasDenials: boolean;
  /** Whether a rule restricts parameters. */
  readonly hasParameters: boolean;
  /** When the first rule expires and the list is out of date, in milliseconds since the epoch; infinite when no rule expires. */
  readonly goodUntilMs: number;
  readonly #exact: ReadonlyMap<string, MergedRule>;
  readonly #prefixes: ReadonlyMap<string, MergedRule>;
  /** Longest first. */
  readonly #prefixLengths: readonly number[];
  readonly #segments: readonly SegmentsRule[];
  /** Cached decisions by path; lists are cached under their path with a trailing slash. */
  readonly #decided = new Map<string, MergedRule | null>();
  /** Copies of this list with a name in every path in lower case, by its place; undefined if no denial has capitals there. */
  readonly #caseFolded = new Map<string, Acl | undefined>();

  /**
   * @param names - of the policies, in their order; absent for policies without a name
   * @param rules - the rules of `policies`, merged by path
   */
  constructor(policies: readonly Policy[], names: readonly string[] = [], rules = runAtOnce(compileSteps(policies, names))) {
    this.hasDenials = policies.some((policy) => policy.some(({ rule }) => rule.deny));
    this.hasParameters = policies.some((policy) => policy.some(({ rule }) => !isUnrestricted(rule.parameters)));
    this.goodUntilMs = policies.reduce(
      (first, policy) => policy.reduce((least, { expiresMs = least }) => Math.min(least, expiresMs), first),
      Number.POSITIVE_INFINITY,
    );
    this.#exact = rules.exact;
    this.#prefixes = rules.prefixes;
    this.#segments = rules.segments;
    this.#prefixLengths = [...new Set([...this.#prefixes.keys()].map(({ length }) => length))].sort((a, b) => b - a);
  }

  /** Compiles policies in time slices. @param names - of the policies, in their order */
  static async compile(policies: readonly Policy[], names: readonly string[] = []): Promise<Acl> {
    return new Acl(policies, names, await runInSlices(compileSteps(policies, names), new TimeSlice(accessTurns)));
  }

  /** Returns every path and every pattern with its rule. */
  rules(): { readonly exact: readonly PathRule[]; readonly patterns: readonly PathRule[] } {
    const pathRules = (rules: Iterable<readonly [string, Rule]>): PathRule[] =>
      [...rules].map(([path, rule]) => ({ path, rule }));
    const segments = this.#segments.map(({ rule }) => [rule.path, rule] as const);
    return { exact: pathRules(this.#exact), patterns: pathRules([...this.#prefixes, ...segments]) };
  }

  /**
   * Returns the rule that denies the path when a name in it is compared case-insensitively, so that a rule written with capitals
   * matches too. The rule's path has the name in lower case.
   * @param path - with the name in lower case; with a trailing slash for a list of the names below it
   */
  nameDenial(path: string, place: NamePlace): MergedRule | undefined {
    if (!this.hasDenials) return undefined;
    // A name of several segments is the end of its path, so rules of any length are folded alike.
    const key = `${place.first}${place.count > 1 ? '+' : ''}`;
    if (!this.#caseFolded.has(key)) this.#caseFolded.set(key, this.#caseFoldedAt(place));
    const folded = this.#caseFolded.get(key);
    const rule = folded && ruleOn(folded, path);
    return rule?.deny === true ? rule : undefined;
  }

  #caseFoldedAt(place: NamePlace): Acl | undefined {
    const written = [...this.#exact.values(), ...this.#prefixes.values(), ...this.#segments.map(({ rule }) => rule)];
    const lower = (path: string): string => withLowerCaseAt(path, place);
    if (!written.some(({ path, deny }) => deny && lower(path) !== path)) return undefined;
    const each = written.flatMap(({ path, of }) => of.map((own) => ({ ...own, path: lower(path) })));
    return new Acl(
      each.map((own) => [own]),
      each.map(({ policy }) => policy),
    );
  }

  /**
   * Returns the rule that decides about a path without a trailing slash; undefined when no rule matches, so that nothing is
   * granted.
   */
  ruleFor(path: string): MergedRule | undefined {
    const known = this.#decided.get(path);
    if (known !== undefined) return known ?? undefined;
    return this.#remember(path, this.#exact.get(path) ?? this.#byPattern(path));
  }

  /**
   * Returns the rule that decides about listing the names below `path`: the exact rule for the path with a trailing slash, otherwise
   * the exact rule for the path without it, otherwise the strongest pattern that matches either form. So a pattern without a trailing
   * slash grants and denies lists too.
   */
  listRuleFor(path: string): MergedRule | undefined {
    const listed = `${path}/`;
    const known = this.#decided.get(listed);
    if (known !== undefined) return known ?? undefined;
    return this.#remember(listed, this.#exact.get(listed) ?? this.#exact.get(path) ?? this.#byPattern(listed, path));
  }

  #remember(path: string, rule: MergedRule | undefined): MergedRule | undefined {
    if (path.length > decisionCharsMax) return rule;
    if (this.#decided.size >= decisionsMax) this.#decided.clear();
    this.#decided.set(path, rule ?? null);
    return rule;
  }

  /** Returns the strongest rule among the longest prefixes and all patterns with `+` that match one of the forms of a path. */
  #byPattern(...forms: readonly string[]): MergedRule | undefined {
    let best: PatternRule | undefined;
    for (const path of forms) {
      const prefix = this.#longestPrefix(path);
      if (prefix !== undefined && (best === undefined || isStronger(prefix, best))) best = prefix;
      if (this.#segments.length === 0) continue;
      const segments = path.split('/');
      for (const each of this.#segments)
        if (matches(each, segments) && (best === undefined || isStronger(each, best))) best = each;
    }
    return best?.rule;
  }

  #longestPrefix(path: string): PatternRule | undefined {
    for (const length of this.#prefixLengths) {
      if (length > path.length) continue;
      const pattern = path.slice(0, length);
      const rule = this.#prefixes.get(pattern);
      if (rule !== undefined) return { pattern, prefix: true, firstWildcard: length, wildcards: 0, rule };
    }
    return undefined;
  }
}

const withLowerCaseAt = (path: string, { first, count }: NamePlace): string =>
  path
    .split('/')
    .map((segment, at) => (at === first || (at > first && count > 1) ? segment.toLowerCase() : segment))
    .join('/');

const hasSegmentWildcard = (path: string): boolean => path.includes('+') && path.split('/').includes('+');

function segmentsRule(rule: MergedRule): SegmentsRule {
  const { path } = rule;
  const prefix = path.endsWith('*');
  const pattern = prefix ? path.slice(0, -1) : path;
  const segments = pattern.split('/');
  return {
    pattern,
    segments,
    prefix,
    firstWildcard: segments.slice(0, segments.indexOf('+')).reduce((at, { length }) => at + length + 1, 0),
    wildcards: segments.filter((segment) => segment === '+').length,
    rule,
  };
}

function matches({ segments, prefix }: SegmentsRule, path: readonly string[]): boolean {
  if (prefix ? path.length < segments.length : path.length !== segments.length) return false;
  const last = segments.length - 1;
  return segments.every((segment, at) => {
    if (segment === '+') return true;
    return prefix && at === last ? path[at]?.startsWith(segment) : path[at] === segment;
  });
}

/**
 * Ranks patterns as Vault and OpenBao do. The stronger pattern is the one whose first wildcard comes later; if these are equal, the
 * one that is not a prefix; then the one with fewer `+`; then the longer one; then the lexically greater one.
 */
function isStronger(one: PatternRule, other: PatternRule): boolean {
  if (one.firstWildcard !== other.firstWildcard) return one.firstWildcard > other.firstWildcard;
  if (one.prefix !== other.prefix) return other.prefix;
  if (one.wildcards !== other.wildcards) return one.wildcards < other.wildcards;
  if (one.pattern.length !== other.pattern.length) return one.pattern.length > other.pattern.length;
  return one.pattern > other.pattern;
}

/** Merges the rules for one path: a denial wins, otherwise capabilities add up. Takes time linear in the size of the rules. */
function merged(path: string, of: readonly OwnRule[]): MergedRule {
  const rules = of.map(({ rule }) => rule);
  const [first] = rules;
  const denial = rules.find(({ deny }) => deny);
  if (denial !== undefined) return { ...denial, path, of };
  if (first !== undefined && rules.length === 1) return { ...first, path, of };
  const pageMax = rules.reduce((least, { pageMax = 0 }) => smallerBound(least, pageMax), 0);
  return {
    capabilities: rules.reduce((bits, { capabilities }) => bits | capabilities, 0),
    deny: false,
    parameters: {
      required: [...new Set(rules.flatMap(({ parameters }) => parameters.required))],
      allowed: mergedLists(rules.map(({ parameters }) => parameters.allowed)),
      denied: mergedLists(rules.map(({ parameters }) => parameters.denied)),
    },
    wrappingTtlS: {
      min: rules.reduce((least, { wrappingTtlS }) => smallerBound(least, wrappingTtlS.min), 0),
      max: rules.reduce((least, { wrappingTtlS }) => smallerBound(least, wrappingTtlS.max), 0),
    },
    ...(pageMax > 0 && { pageMax }),
    path,
    of,
  };
}

const smallerBound = (one: number, other: number): number => (one === 0 || other === 0 ? one + other : Math.min(one, other));

/** A request to decide about. */
interface AccessRequest {
  readonly capability: Capability;
  /** With a trailing slash, or with the capability `list`, the request lists the names below the path. */
  readonly path: string;
  /** Fields of the request's body. Absent if the body has not been read; the parameters are then not checked. */
  readonly parameters?: Parameters | undefined;
  /** How the operation reads the parameters. */
  readonly reading?: ParameterReading | undefined;
  /** A node will use the capability later: of the parameters, only the conditions count. */
  readonly isLater?: true;
  /** Requested wrapping TTL in seconds, 0 for none; absent to skip the wrapping bounds of the rule. */
  readonly wrapTtlS?: number | undefined;
}

/** A refusal by the policies: the constraint, and the rule that decided; no rule matches the path if that is undefined. */
export interface Denial extends ParameterRefusal {
  readonly rule: MergedRule | undefined;
}

/** The constraint of a request without a capability. */
const missing = Object.fromEntries(capabilities.map((name) => [name, `capabilities.${name}`])) as Readonly<
  Record<Capability, string>
>;

/** Returns why the rule on the path refuses the request; undefined if it grants the capability and allows the parameters. */
export function denialOf(
  acl: Acl,
  { capability, path, parameters, reading, isLater, wrapTtlS }: AccessRequest,
): Denial | undefined {
  const rule = capability === 'list' ? acl.listRuleFor(path) : ruleOn(acl, path);
  if (rule === undefined || (rule.capabilities & bitOf(capability)) === 0)
    return { constraint: rule?.deny === true ? 'deny' : missing[capability], rule };
  if (capability === 'sudo') return undefined;
  const bound = wrapTtlS === undefined ? undefined : missedBound(rule, wrapTtlS);
  if (bound !== undefined) return { constraint: bound, rule };
  if (parameters === undefined || capability === 'list') return undefined;
  // As in the peers, a deletion has no parameters: a rule that also grants changes speaks of theirs. Only its conditions are ours.
  const refused =
    capability === 'delete' || isLater === true
      ? refusedCondition(rule.parameters, parameters, reading)
      : refusedParameter(rule.parameters, parameters, reading);
  return refused && { ...refused, rule };
}

/** Returns whether the rule on the path grants the capability and allows the parameters. */
export const permits = (acl: Acl, request: AccessRequest): boolean => denialOf(acl, request) === undefined;

/** Returns why the rule on the path refuses an item of the request's lists; undefined if it allows all of them. */
export async function itemDenialOf(
  acl: Acl,
  path: string,
  parameters: Parameters,
  reading: ParameterReading,
): Promise<Denial | undefined> {
  const rule = acl.ruleFor(path);
  const refused = rule && (await refusedItem(rule.parameters, parameters, reading));
  return refused && { ...refused, rule };
}

/**
 * Returns how many names a list below `path` may return, whether the request must set a limit, and the rule that says so; undefined when
 * there is no bound.
 */
export function pageOf(
  acl: Acl,
  path: string,
): { readonly max: number; readonly isRequired: boolean; readonly rule: MergedRule } | undefined {
  const rule = acl.listRuleFor(path);
  if (rule?.pageMax === undefined) return undefined;
  return { max: rule.pageMax, isRequired: rule.parameters.required.includes('limit'), rule };
}

/** Returns why the rule on the path denies a value that the operation uses under one of these names; undefined if it does not. */
export function valueDenialOf(acl: Acl, path: string, names: readonly string[], value: ParameterValue): Denial | undefined {
  const rule = acl.ruleFor(path);
  const name = rule && deniedName(rule.parameters, names, value);
  return name === undefined ? undefined : { constraint: `denied_parameters.${name}`, rule };
}

/** A rule with wrapping bounds requires wrapping. Returns the bound that a TTL misses; undefined if it is within both. */
function missedBound({ wrappingTtlS: { min, max } }: Rule, ttlS: number): string | undefined {
  if ((min === 0 && max === 0) || (ttlS > 0 && ttlS >= min && (max === 0 || ttlS <= max))) return undefined;
  return min > 0 && ttlS < min ? 'min_wrapping_ttl' : 'max_wrapping_ttl';
}

const ruleOn = (acl: Acl, path: string): MergedRule | undefined =>
  path.endsWith('/') ? acl.listRuleFor(path.slice(0, -1)) : acl.ruleFor(path);

/**
 * Returns the rule that denies the path explicitly. A path without a rule is not denied explicitly.
 * @param path - with a trailing slash for a list of the names below it
 */
export function explicitDenialOf(acl: Acl, path: string): Denial | undefined {
  const rule = acl.hasDenials ? ruleOn(acl, path) : undefined;
  return rule?.deny === true ? { constraint: 'deny', rule } : undefined;
}

/** Returns whether a rule denies the path explicitly. */
export const denies = (acl: Acl, path: string): boolean => explicitDenialOf(acl, path) !== undefined;

/** Returns a denial as the audit log records it: with the rules that were merged into the deciding one. */
export const refusedByPolicy = ({ rule, ...denial }: Denial): RefusedBy => ({
  ...denial,
  rules: rule === undefined ? [] : rulesIn(rule, (own) => own.deny || !rule.deny),
});

/**
 * Returns the rules that grant an allowed request: those of each policy with the first of these capabilities that the deciding rule has.
 * @param wanted - capabilities, any of which is enough
 */
export function grantsOn(acl: Acl, path: string, wanted: readonly Capability[]): readonly PolicyRule[] {
  const rule = wanted.includes('list') ? acl.listRuleFor(path) : ruleOn(acl, path);
  const used = rule && wanted.map(bitOf).find((bit) => (rule.capabilities & bit) !== 0);
  return rule === undefined || used === undefined ? [] : rulesIn(rule, ({ capabilities: own }) => (own & used) !== 0);
}

/** Returns the rules that were merged into one, a policy once. */
function rulesIn({ path, of }: MergedRule, counts: (own: Rule) => boolean): readonly PolicyRule[] {
  const policies = new Set(of.filter(({ rule }) => counts(rule)).map(({ policy }) => policy));
  return [...policies].map((policy) => ({ policy, path }));
}

/** Returns the capabilities of a rule in alphabetical order; `deny` alone when it grants nothing. */
export function capabilityNames({ deny, capabilities }: Rule): readonly (Capability | 'deny')[] {
  const names = deny ? [] : namesOf(capabilities);
  return names.length === 0 ? ['deny'] : names;
}

/** Returns the path or pattern of the rule that decides about a path; undefined if no rule matches. */
export const decidingPath = (acl: Acl, path: string): string | undefined => ruleOn(acl, path)?.path;

/** Returns the capabilities on a path in alphabetical order. A path with a trailing slash stands for a list of the names below it. */
export function capabilitiesOn(acl: Acl, path: string): readonly (Capability | 'deny')[] {
  const rule = ruleOn(acl, path);
  return rule === undefined ? ['deny'] : capabilityNames(rule);
}
