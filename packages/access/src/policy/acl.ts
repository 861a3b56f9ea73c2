import { runAtOnce, runInSlices, type Steps } from '../scheduling/steps.ts';
import { bitOf, type Capability, namesOf } from './capability.ts';
import {
  isUnrestricted,
  isValueDenied,
  itemsWithin,
  mergedLists,
  type ParameterReading,
  type Parameters,
  type ParameterValue,
  withinParameters,
} from './parameters.ts';
import type { PathRule, Policy, Rule } from './policy.ts';

/** A rule for more than one path, with what decides between several that match. */
interface PatternRule {
  /** Without a `*` at its end. */
  readonly pattern: string;
  /** It ended in `*`: it holds for whatever begins with it. */
  readonly prefix: boolean;
  /** Where the first `+` or `*` stands. */
  readonly firstWildcard: number;
  /** Segments that are `+`. */
  readonly wildcards: number;
  readonly rule: Rule;
}

/** A pattern with at least one segment `+`. */
interface SegmentsRule extends PatternRule {
  readonly segments: readonly string[];
}

/** Decisions kept, and the longest path of one: whoever has a token may ask for any path, and fills no memory with them. */
const [decisionsMax, decisionCharsMax] = [256, 128];
/** What they take at most, in bytes. */
export const decisionsBytesMax = decisionsMax * (2 * decisionCharsMax + 64);

/** Rules of several policies, those for the same path made one. */
interface Compiled {
  readonly exact: ReadonlyMap<string, Rule>;
  readonly prefixes: ReadonlyMap<string, Rule>;
  readonly segments: readonly SegmentsRule[];
}

function* compileSteps(policies: readonly Policy[]): Steps<Compiled> {
  const rules = { exact: new Map<string, Rule[]>(), prefix: new Map<string, Rule[]>(), segments: new Map<string, Rule[]>() };
  for (const policy of policies) {
    for (const { path, rule } of policy) {
      yield;
      const [byPath, key] = hasSegmentWildcard(path)
        ? [rules.segments, path]
        : path.endsWith('*')
          ? [rules.prefix, path.slice(0, -1)]
          : [rules.exact, path];
      const present = byPath.get(key);
      if (present === undefined) byPath.set(key, [rule]);
      else present.push(rule);
    }
  }
  const exact = new Map<string, Rule>();
  const prefixes = new Map<string, Rule>();
  const segments: SegmentsRule[] = [];
  for (const [from, to] of [
    [rules.exact, exact],
    [rules.prefix, prefixes],
  ] as const) {
    for (const [path, all] of from) {
      yield;
      to.set(path, merged(all));
    }
  }
  for (const [path, all] of rules.segments) {
    yield;
    segments.push(segmentsRule({ path, rule: merged(all) }));
  }
  return { exact, prefixes, segments };
}

/**
 * Several policies compileSteps into one. Exactly one rule decides about a path; those for the same path in several policies are one
 * rule by then. It never changes.
 */
export class Acl {
  /** Some path is denied in so many words. */
  readonly hasDenials: boolean;
  /** Some rule says something of parameters. */
  readonly hasParameters: boolean;
  /** Milliseconds since the epoch at which the first of the rules reaches its time, and this is not what the policies say any longer. */
  readonly goodUntilMs: number;
  readonly #exact: ReadonlyMap<string, Rule>;
  readonly #prefixes: ReadonlyMap<string, Rule>;
  /** Longest first. */
  readonly #prefixLengths: readonly number[];
  readonly #segments: readonly SegmentsRule[];
  /** What was decided lately, lists under their path with a slash. */
  readonly #decided = new Map<string, Rule | null>();
  /** This with one segment of every path in lower case, by that segment; undefined where no denial has capitals there. */
  readonly #caseFolded = new Map<number, Acl | undefined>();

  /** @param rules - of `policies`, made one for each path */
  constructor(policies: readonly Policy[], rules = runAtOnce(compileSteps(policies))) {
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

  /** The same, in turns with other work. */
  static async compile(policies: readonly Policy[]): Promise<Acl> {
    return new Acl(policies, await runInSlices(compileSteps(policies)));
  }

  /** Every path with a rule, and every pattern, each with what it grants. */
  rules(): { readonly exact: readonly PathRule[]; readonly patterns: readonly PathRule[] } {
    const pathRules = (rules: Iterable<readonly [string, Rule]>): PathRule[] =>
      [...rules].map(([path, rule]) => ({ path, rule }));
    const segments = this.#segments.map(({ pattern, prefix, rule }) => [prefix ? `${pattern}*` : pattern, rule] as const);
    return { exact: pathRules(this.#exact), patterns: pathRules([...this.#prefixes, ...segments]) };
  }

  /**
   * Whether the path is denied when the name in one of its segments counts without case: also by a rule that writes the name with capitals.
   * @param path - with that segment in lower case
   * @param nameAt - number of the segment, from 0
   */
  deniesName(path: string, nameAt: number): boolean {
    if (!this.hasDenials) return false;
    if (!this.#caseFolded.has(nameAt)) this.#caseFolded.set(nameAt, this.#caseFoldedAt(nameAt));
    return this.#caseFolded.get(nameAt)?.ruleFor(path)?.deny === true;
  }

  #caseFoldedAt(nameAt: number): Acl | undefined {
    const written: PathRule[] = [
      ...[...this.#exact].map(([path, rule]) => ({ path, rule })),
      ...[...this.#prefixes].map(([path, rule]) => ({ path: `${path}*`, rule })),
      ...this.#segments.map(({ pattern, prefix, rule }) => ({ path: prefix ? `${pattern}*` : pattern, rule })),
    ];
    const lower = (path: string): string => withLowerCaseAt(path, nameAt);
    if (!written.some(({ path, rule }) => rule.deny && lower(path) !== path)) return undefined;
    return new Acl([written.map(({ path, rule }) => ({ path: lower(path), rule }))]);
  }

  /** The rule that decides about `path`, which has no slash at its end; undefined when there is none, so nothing is granted. */
  ruleFor(path: string): Rule | undefined {
    const known = this.#decided.get(path);
    if (known !== undefined) return known ?? undefined;
    return this.#remember(path, this.#exact.get(path) ?? this.#byPattern(path));
  }

  /**
   * The same for a list of what lies below `path`: an exact rule with a slash at its end, then one without; then the strongest pattern that matches
   * either of them. So a pattern without a slash grants and denies lists too.
   */
  listRuleFor(path: string): Rule | undefined {
    const listed = `${path}/`;
    const known = this.#decided.get(listed);
    if (known !== undefined) return known ?? undefined;
    return this.#remember(listed, this.#exact.get(listed) ?? this.#exact.get(path) ?? this.#byPattern(listed, path));
  }

  #remember(path: string, rule: Rule | undefined): Rule | undefined {
    if (path.length > decisionCharsMax) return rule;
    if (this.#decided.size >= decisionsMax) this.#decided.clear();
    this.#decided.set(path, rule ?? null);
    return rule;
  }

  /** The strongest among the longest prefixes and all patterns with `+` that match one of the forms of a path. */
  #byPattern(...forms: readonly string[]): Rule | undefined {
    let best: PatternRule | undefined;
    for (const path of forms) {
      const prefix = this.#longestPrefix(path);
      if (prefix !== undefined && (best === undefined || isStronger(prefix, best))) best = prefix;
      if (this.#segments.length === 0) continue;
      const asked = path.split('/');
      for (const each of this.#segments) if (matches(each, asked) && (best === undefined || isStronger(each, best))) best = each;
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

const withLowerCaseAt = (path: string, nameAt: number): string =>
  path
    .split('/')
    .map((segment, at) => (at === nameAt ? segment.toLowerCase() : segment))
    .join('/');

const hasSegmentWildcard = (path: string): boolean => path.includes('+') && path.split('/').includes('+');

function segmentsRule({ path, rule }: PathRule): SegmentsRule {
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

function matches({ segments, prefix }: SegmentsRule, asked: readonly string[]): boolean {
  if (prefix ? asked.length < segments.length : asked.length !== segments.length) return false;
  const last = segments.length - 1;
  return segments.every((segment, at) => {
    if (segment === '+') return true;
    return prefix && at === last ? asked[at]?.startsWith(segment) : asked[at] === segment;
  });
}

/** The order of the peers: first wildcard later, then not a prefix, then fewer `+`, then longer, then lexically greater. */
function isStronger(one: PatternRule, other: PatternRule): boolean {
  if (one.firstWildcard !== other.firstWildcard) return one.firstWildcard > other.firstWildcard;
  if (one.prefix !== other.prefix) return other.prefix;
  if (one.wildcards !== other.wildcards) return one.wildcards < other.wildcards;
  if (one.pattern.length !== other.pattern.length) return one.pattern.length > other.pattern.length;
  return one.pattern > other.pattern;
}

/** One path in several policies: what any of them grants, unless one denies. Linear in all that they say. */
function merged(rules: readonly Rule[]): Rule {
  const [first] = rules;
  const denial = rules.find(({ deny }) => deny);
  if (denial !== undefined) return denial;
  if (first !== undefined && rules.length === 1) return first;
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
  };
}

const smallerBound = (one: number, other: number): number => (one === 0 || other === 0 ? one + other : Math.min(one, other));

/** What is asked on a path, with the members of the request where there are any yet. */
export interface AccessQuestion {
  readonly capability: Capability;
  /** With a slash at its end it is about a list of what lies below, which `list` always is. */
  readonly path: string;
  readonly parameters?: Parameters | undefined;
  /** How the operation reads them. */
  readonly reading?: ParameterReading | undefined;
  /** Seconds for which the answer is to be wrapped, 0 for not at all; without it the bounds of the rule are not looked at. */
  readonly wrapTtlS?: number | undefined;
}

/** The decision: the one rule grants the capability, and the request is within the rule's parameters. */
export function permits(acl: Acl, { capability, path, parameters, reading, wrapTtlS }: AccessQuestion): boolean {
  const rule = capability === 'list' ? acl.listRuleFor(path) : ruleOn(acl, path);
  if (rule === undefined || (rule.capabilities & bitOf(capability)) === 0) return false;
  if (capability === 'sudo') return true;
  if (wrapTtlS !== undefined && !meetsWrappingBounds(rule, wrapTtlS)) return false;
  if (parameters === undefined || capability === 'list' || capability === 'delete') return true;
  return withinParameters(rule.parameters, parameters, reading);
}

/** The rest of the decision: whether the items of the request's lists are within the rule's parameters. */
export async function permitsItems(acl: Acl, path: string, parameters: Parameters, reading: ParameterReading): Promise<boolean> {
  const rule = acl.ruleFor(path);
  return rule === undefined || itemsWithin(rule.parameters, parameters, reading);
}

/** How many names a list of what lies below `path` may show, and whether the request has to say how many; undefined for all. */
export function pageOf(acl: Acl, path: string): { readonly max: number; readonly isRequired: boolean } | undefined {
  const rule = acl.listRuleFor(path);
  return rule?.pageMax === undefined ? undefined : { max: rule.pageMax, isRequired: rule.parameters.required.includes('limit') };
}

/** Whether the rule on the path denies a value that the operation uses under these names. */
export const deniesValue = (acl: Acl, path: string, names: readonly string[], value: ParameterValue): boolean => {
  const rule = acl.ruleFor(path);
  return rule !== undefined && isValueDenied(rule.parameters, names, value);
};

/** A rule that bounds wrapping asks for it. */
const meetsWrappingBounds = ({ wrappingTtlS: { min, max } }: Rule, ttlS: number): boolean =>
  (min === 0 && max === 0) || (ttlS > 0 && ttlS >= min && (max === 0 || ttlS <= max));

const ruleOn = (acl: Acl, path: string): Rule | undefined =>
  path.endsWith('/') ? acl.listRuleFor(path.slice(0, -1)) : acl.ruleFor(path);

/** Whether the path is denied in so many words, not merely not granted. */
export const denies = (acl: Acl, path: string): boolean => acl.hasDenials && acl.ruleFor(path)?.deny === true;

/** What a rule grants, in alphabetical order; deny alone where that is nothing. */
export function capabilityNames({ deny, capabilities }: Rule): readonly (Capability | 'deny')[] {
  const names = deny ? [] : namesOf(capabilities);
  return names.length === 0 ? ['deny'] : names;
}

/** What may be done on a path, in alphabetical order; a path with a slash at its end is asked about as a list. */
export function capabilitiesOn(acl: Acl, path: string): readonly (Capability | 'deny')[] {
  const rule = ruleOn(acl, path);
  return rule === undefined ? ['deny'] : capabilityNames(rule);
}
