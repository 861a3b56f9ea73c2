import { bitOf, type CapabilityBits, isCapability, oldPolicies } from './capability.ts';
import { type Document, type Member, PolicyMistake, type Value } from './document.ts';
import type { ParameterLists, ParameterRules, ParameterValue } from './parameters.ts';
import { secondsOf } from './written-number.ts';

/** What a policy grants on one path, or on the paths that a pattern names. */
export interface Rule {
  readonly capabilities: CapabilityBits;
  /** Explicit: it grants nothing, whatever another policy grants on the same path. */
  readonly deny: boolean;
  readonly parameters: ParameterRules;
  /** Bounds of the wrapping that an answer must have, in seconds; 0 sets none. */
  readonly wrappingTtlS: { readonly min: number; readonly max: number };
}

/** A rule and where it holds. */
export interface PathRule {
  /** Below `/v1/`; `*` at its end stands for any text, a segment `+` for any one segment. */
  readonly path: string;
  readonly rule: Rule;
}

export type Policy = readonly PathRule[];

/** Blocks of one policy; each may be tried for every path that is asked about. */
const rulesMax = 5000;

/** What a policy's text says. @throws PolicyMistake */
export function readPolicy(document: Document): Policy {
  const rules: PathRule[] = [];
  for (const { name, at, value } of document.members.filter(isGiven)) {
    if (name === 'name') continue;
    if (name !== 'path') throw new PolicyMistake(at, 'expected "path"');
    for (const path of blocksOf(value).flatMap(({ members }) => members.filter(isGiven))) {
      for (const rule of readPath(path)) rules.push(rule);
      if (rules.length > rulesMax) throw new PolicyMistake(path.at, `a policy has at most ${rulesMax} path blocks`);
    }
  }
  return rules;
}

const isGiven = ({ value }: Member): boolean => value.kind !== 'null';

/** One object, or a list of them, as generated JSON has it. */
function blocksOf(value: Value): readonly Document[] {
  if (value.kind === 'object') return [value];
  if (value.kind !== 'list') throw new PolicyMistake(value.at, 'expected a block');
  return value.items.flatMap(blocksOf);
}

function readPath({ name, at, value }: Member): Policy {
  const path = name.startsWith('/') ? name.slice(1) : name;
  if (path.includes('+*')) throw new PolicyMistake(at, 'invalid use of wildcards ("+*" is forbidden)');
  return blocksOf(value).map((block) => ({ path, rule: readRule(block) }));
}

/** Shared by all rules that say nothing of parameters: there may be very many. */
const none: ParameterRules = { required: [], allowed: new Map(), denied: new Map() };
const unbounded: Rule['wrappingTtlS'] = { min: 0, max: 0 };

interface Draft {
  capabilities: CapabilityBits;
  deny: boolean;
  required: readonly string[];
  allowed: ParameterLists;
  denied: ParameterLists;
  min: number;
  max: number;
}

const attributes: Readonly<Record<string, (draft: Draft, value: Value) => void>> = {
  comment: (_draft, value) => void text(value),
  capabilities: (draft, value) => {
    for (const item of items(value)) grant(draft, item);
  },
  policy: (draft, value) => {
    const word = text(value);
    const bits = oldPolicies.get(word);
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
};

function readRule({ at, members }: Document): Rule {
  const draft: Draft = {
    capabilities: 0,
    deny: false,
    required: none.required,
    allowed: none.allowed,
    denied: none.denied,
    min: 0,
    max: 0,
  };
  const seen: string[] = [];
  for (const member of members) {
    if (!isGiven(member)) continue;
    const read = Object.hasOwn(attributes, member.name) ? attributes[member.name] : undefined;
    // One that is not known may take rights away where it is: ignoring it would grant them.
    if (read === undefined) throw new PolicyMistake(member.at, 'a path block has no attribute of this name');
    if (seen.includes(member.name)) throw new PolicyMistake(member.at, 'this attribute is here for the second time');
    seen.push(member.name);
    read(draft, member.value);
  }
  const { capabilities, deny, required, allowed, denied, min, max } = draft;
  if (max !== 0 && max < min) throw new PolicyMistake(at, 'max_wrapping_ttl cannot be less than min_wrapping_ttl');
  const free = required === none.required && allowed === none.allowed && denied === none.denied;
  return {
    capabilities: deny ? 0 : capabilities,
    deny,
    parameters: free ? none : { required, allowed, denied },
    wrappingTtlS: min === 0 && max === 0 ? unbounded : { min, max },
  };
}

function grant(draft: Draft, item: Value): void {
  const word = text(item);
  if (word === 'deny') draft.deny = true;
  else if (isCapability(word)) draft.capabilities |= bitOf(word);
  else throw new PolicyMistake(item.at, 'invalid capability');
}

function parameterLists(value: Value): ParameterLists {
  const lists = new Map<string, readonly ParameterValue[]>();
  if (value.kind !== 'object') throw new PolicyMistake(value.at, 'expected an object of lists');
  for (const { name, at, value: listed } of value.members) {
    const key = name.toLowerCase();
    if (lists.has(key)) throw new PolicyMistake(at, 'this parameter is here for the second time');
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
