import type { Steps } from '@transitd/event-loop';
import { secondsOf } from '@transitd/process';
import { misspelled } from '../values/nearest-name.ts';
import { bitOf, type CapabilityBits, capabilities, isCapability, legacyPolicyWords } from './capability.ts';
import { type Document, type Member, PolicyMistake, PolicyMistakes, type Value } from './document.ts';
import type { ParameterValue } from './parameter-values.ts';
import type { ParameterLists, ParameterRules } from './parameters.ts';

/** Rights and restrictions on one path or pattern. */
export interface Rule {
  readonly capabilities: CapabilityBits;
  /** An explicit denial; it overrides what another policy grants on the same path. */
  readonly deny: boolean;
  readonly parameters: ParameterRules;
  /** Bounds of the wrapping TTL that a response must have, in seconds; 0 for no bound. */
  readonly wrappingTtlS: { readonly min: number; readonly max: number };
  /** Maximum number of names that a list may return; absent for no limit. */
  readonly pageMax?: number;
}

/** A rule and the paths to which it applies. */
export interface PathRule {
  /** Path below `/v1/`. A trailing `*` matches any string; a segment `+` matches any one segment. */
  readonly path: string;
  readonly rule: Rule;
  /** When the rule expires, in milliseconds since the epoch; absent when it does not. */
  readonly expiresMs?: number;
}

export type Policy = readonly PathRule[];

/** A parsed policy. */
export interface ParsedPolicy {
  readonly policy: Policy;
  /** Warnings for the author about parts of the policy that have no effect in transitd. */
  readonly notices: readonly string[];
}

/** Maximum number of path blocks in one policy: each may be tried for every requested path. */
const rulesMax = 5000;

/** Maximum number of mistakes that are reported at once. */
const mistakesMax = 10;

/** Reads the rules of a policy. @throws PolicyMistake, PolicyMistakes */
export function* readPolicy(document: Document): Steps<ParsedPolicy> {
  const rules: PathRule[] = [];
  const found: Noticed = { templates: 0, temporary: 0, inVain: new Set() };
  const mistakes: PolicyMistake[] = [];
  let blocks = 0;
  for (const { name, at, value } of document.members.filter(isGiven)) {
    if (name === 'name') continue;
    if (name !== 'path') throw new PolicyMistake(at, 'expected "path"');
    for (const path of blocksOf(value).flatMap(({ members }) => members.filter(isGiven))) {
      for (const block of blocksOf(path.value)) {
        yield;
        blocks += 1;
        if (blocks > rulesMax) throw new PolicyMistake(path.at, `a policy must have at most ${rulesMax} path blocks`);
        const rule = { path: pathOf(path), ...readRule(block, found, mistakes) };
        if (isTemplate(path)) found.templates += 1;
        else rules.push(rule);
      }
    }
  }
  if (mistakes.length > 0) throw new PolicyMistakes(mistakes);
  return { policy: rules, notices: noticesOf(found) };
}

/** Numbers of rules with features that work differently here than in Vault and OpenBao, and the words from `grantsNothing`. */
interface Noticed {
  templates: number;
  temporary: number;
  readonly inVain: Set<string>;
}

/** Capabilities of Vault and OpenBao for features that do not exist here. They are accepted, so that a policy can be used in both. */
const grantsNothing: ReadonlyMap<string, string> = new Map([
  ['recover', 'values are not recovered from snapshots'],
  ['scan', 'recursive lists are not supported'],
  ['subscribe', 'there are no event notifications'],
]);

function noticesOf({ templates, temporary, inVain }: Noticed): string[] {
  return [
    templates > 0 &&
      `${templates} of its paths have a template such as {{identity.entity.id}}: tokens have no identity here, so they match no request`,
    ...[...inVain].sort().map((word) => `the capability ${word} grants nothing: ${grantsNothing.get(word)}`),
    temporary > 0 && `${temporary} of its rules have an expiration: after it, the rule is ignored, even if it is a denial`,
  ].filter((notice) => notice !== false);
}

/**
 * Returns whether a path has a template. Vault and OpenBao fill templates with the caller's identity, and such a rule matches nothing
 * for a token without an identity. In transitd no token has an identity, so the rule never matches.
 * @throws PolicyMistake for a template that is unbalanced or empty
 */
function isTemplate({ name, at }: Member): boolean {
  if (!name.includes('{{') && !name.includes('}}')) return false;
  const rest = name.replace(/\{\{([^{}]*)\}\}/g, (_whole, inside: string) => (inside.trim() === '' ? '{{' : ''));
  if (rest.includes('{{') || rest.includes('}}'))
    throw new PolicyMistake(at, 'failed to validate policy templating: "{{" and "}}" must enclose a name, in pairs');
  return true;
}

const isGiven = ({ value }: Member): boolean => value.kind !== 'null';

/** Returns the blocks of one object or of a list of objects. Generated JSON contains such lists. */
function blocksOf(value: Value): readonly Document[] {
  if (value.kind === 'object') return [value];
  if (value.kind !== 'list') throw new PolicyMistake(value.at, 'expected a block');
  return value.items.flatMap(blocksOf);
}

function pathOf({ name, at }: Member): string {
  if (name.includes('+*')) throw new PolicyMistake(at, 'invalid use of wildcards ("+*" is forbidden)');
  return name.startsWith('/') ? name.slice(1) : name;
}

/** Shared by all rules without parameters, since there may be very many. */
const noParameterRules: ParameterRules = { required: [], allowed: new Map(), denied: new Map() };
const unbounded: Rule['wrappingTtlS'] = { min: 0, max: 0 };

interface Draft {
  capabilities: CapabilityBits;
  deny: boolean;
  required: readonly string[];
  allowed: ParameterLists;
  denied: ParameterLists;
  min: number;
  max: number;
  pageMax: number;
  expiresMs: number;
  /** That of the whole policy. */
  readonly inVain: Noticed['inVain'];
}

const attributes: Readonly<Record<string, (draft: Draft, value: Value) => void>> = {
  comment: (_draft, value) => void text(value),
  capabilities: (draft, value) => {
    for (const item of items(value)) grant(draft, item);
  },
  policy: (draft, value) => {
    const word = text(value);
    const bits = legacyPolicyWords.get(word);
    if (word === 'deny') draft.deny = true;
    else if (bits === undefined) throw new PolicyMistake(value.at, 'invalid policy, expected "deny", "read", "write" or "sudo"');
    else draft.capabilities |= bits;
  },
  required_parameters: (draft, value) => {
    draft.required = items(value).map((item) => text(item).toLowerCase());
  },
  allowed_parameters: (draft, value) => {
    draft.allowed = parameterLists(value);
  },
  denied_parameters: (draft, value) => {
    draft.denied = parameterLists(value);
  },
  min_wrapping_ttl: (draft, value) => {
    draft.min = seconds(value);
  },
  max_wrapping_ttl: (draft, value) => {
    draft.max = seconds(value);
  },
  pagination_limit: (draft, value) => {
    if (value.kind !== 'number' || !Number.isSafeInteger(value.number) || value.number < 0)
      throw new PolicyMistake(value.at, 'expected a whole number, 0 for no limit');
    draft.pageMax = value.number;
  },
  expiration: (draft, value) => {
    draft.expiresMs = time(value);
  },
  // Restricts only the capability subscribe, which grants nothing.
  subscribe_event_types: (_draft, value) => items(value).forEach(text),
};

/** @param mistakes - receives the mistakes in the attributes, so that all of them are reported @throws PolicyMistakes */
function readRule({ at, members }: Document, found: Noticed, mistakes: PolicyMistake[]): Omit<PathRule, 'path'> {
  const draft: Draft = {
    capabilities: 0,
    deny: false,
    required: noParameterRules.required,
    allowed: noParameterRules.allowed,
    denied: noParameterRules.denied,
    min: 0,
    max: 0,
    pageMax: 0,
    expiresMs: 0,
    inVain: found.inVain,
  };
  const seen: string[] = [];
  for (const member of members) {
    if (!isGiven(member)) continue;
    try {
      readAttribute(draft, member, seen);
    } catch (error) {
      if (!(error instanceof PolicyMistake)) throw error;
      report(mistakes, error);
    }
  }
  const { capabilities, deny, required, allowed, denied, min, max, pageMax, expiresMs } = draft;
  found.temporary += Number(expiresMs > 0);
  if (max !== 0 && max < min) report(mistakes, new PolicyMistake(at, 'max_wrapping_ttl cannot be less than min_wrapping_ttl'));
  const free =
    required === noParameterRules.required && allowed === noParameterRules.allowed && denied === noParameterRules.denied;
  const rule: Rule = {
    capabilities: deny ? 0 : capabilities,
    deny,
    parameters: free ? noParameterRules : { required, allowed, denied },
    wrappingTtlS: min === 0 && max === 0 ? unbounded : { min, max },
    ...(pageMax > 0 && { pageMax }),
  };
  return { rule, ...(expiresMs > 0 && { expiresMs }) };
}

/** Adds a mistake. @throws PolicyMistakes when there are enough: the text is searched from its beginning for the line of each */
function report(mistakes: PolicyMistake[], mistake: PolicyMistake): void {
  mistakes.push(mistake);
  if (mistakes.length >= mistakesMax) throw new PolicyMistakes(mistakes);
}

/** @param seen - names of the earlier attributes; the name of this one is added */
function readAttribute(draft: Draft, { name, at, value }: Member, seen: string[]): void {
  const read = Object.hasOwn(attributes, name) ? attributes[name] : undefined;
  // In Vault or OpenBao, an attribute unknown here may restrict rights; ignoring it would grant these rights.
  if (read === undefined) {
    throw new PolicyMistake(at, `a path block has no attribute of this name${misspelled(name, Object.keys(attributes))}`);
  }
  if (seen.includes(name)) throw new PolicyMistake(at, 'this attribute is given twice');
  seen.push(name);
  read(draft, value);
}

function grant(draft: Draft, item: Value): void {
  const word = text(item);
  if (word === 'deny') draft.deny = true;
  else if (grantsNothing.has(word)) draft.inVain.add(word);
  else if (isCapability(word)) draft.capabilities |= bitOf(word);
  else throw new PolicyMistake(item.at, `invalid capability${misspelled(word, [...capabilities, 'deny'])}`);
}

function parameterLists(value: Value): ParameterLists {
  const lists = new Map<string, readonly ParameterValue[]>();
  if (value.kind !== 'object') throw new PolicyMistake(value.at, 'expected an object of lists');
  for (const { name, at, value: listed } of value.members) {
    const key = name.toLowerCase();
    if (lists.has(key)) throw new PolicyMistake(at, 'this parameter is given twice');
    lists.set(key, items(listed).map(scalar));
  }
  return lists;
}

function scalar(value: Value): ParameterValue {
  if (value.kind === 'text') return value.text;
  if (value.kind === 'number') return value.number;
  if (value.kind === 'bool') return value.bool;
  throw new PolicyMistake(value.at, 'expected a string, a number or a boolean');
}

function items(value: Value): readonly Value[] {
  if (value.kind !== 'list') throw new PolicyMistake(value.at, 'expected a list');
  return value.items;
}

function text(value: Value): string {
  if (value.kind !== 'text') throw new PolicyMistake(value.at, 'expected a string');
  return value.text;
}

function seconds(value: Value): number {
  const given = value.kind === 'number' ? value.number : secondsOf(text(value));
  if (!Number.isSafeInteger(given) || given < 0)
    throw new PolicyMistake(value.at, 'expected a duration such as "90s" or "1h30m"');
  return given;
}

/** Parses a time in RFC 3339 or in whole seconds since the epoch. Returns milliseconds since the epoch. */
function time(value: Value): number {
  const given = value.kind === 'number' ? String(value.number) : text(value);
  const ms = /^\d{1,12}$/.test(given)
    ? Number(given) * 1000
    : /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/.test(given)
      ? Date.parse(given.toUpperCase())
      : Number.NaN;
  if (!Number.isSafeInteger(ms) || ms <= 0)
    throw new PolicyMistake(value.at, 'expected a time such as "2030-01-31T12:00:00Z", or seconds since 1970');
  return ms;
}
