import { type Acl, capabilitiesOn, capabilityNames, denies, deniesValue, pageOf, permits, permitsItems } from '../policy/acl.ts';
import type { Capability } from '../policy/capability.ts';
import type { ParameterReading, Parameters, ParameterValue } from '../policy/parameters.ts';
import type { PathRule } from '../policy/policy.ts';
import type { TokenRecord } from './token-record.ts';

/** Who a request comes from, as its token says, and what its policies come to. */
export interface Principal {
  /** Keyed hash of the token: its name among the tokens, and no credential. */
  readonly id: string;
  readonly record: TokenRecord;
  /** Has the policy `root`: nothing is refused. */
  readonly root: boolean;
  readonly acl: Acl;
  /** Milliseconds since the epoch at which the token, one above it, or a rule of its policies reaches its time; infinite when none does. */
  readonly goodUntilMs: number;
}

/**
 * The one question about rights.
 * @param path - below `/v1/`, without a slash at its end, for a list too
 * @param parameters - the request's members; without them the parameters of the rule are not looked at
 * @param reading - how the operation reads its members
 * @param wrapTtlS - seconds for which the answer is to be wrapped; without it the rule's bounds of that are not looked at
 */
export const allows = (
  { root, acl }: Principal,
  capability: Capability,
  path: string,
  parameters?: Parameters,
  wrapTtlS?: number,
  reading?: ParameterReading,
): boolean => root || permits(acl, { capability, path, parameters, reading, wrapTtlS });

/** The rest of the question where a request holds lists of items: whether the rule on the path allows every item. Work in turns. */
export const allowsItems = async (
  { root, acl }: Principal,
  path: string,
  parameters: Parameters,
  reading: ParameterReading,
): Promise<boolean> => root || permitsItems(acl, path, parameters, reading);

/** How many names a list below `path` may show by the rule on it; undefined for all. @see pageOf */
export const pageAllowed = ({ root, acl }: Principal, path: string): ReturnType<typeof pageOf> =>
  root ? undefined : pageOf(acl, path);

/** Whether parameters of requests have to be looked at for this caller. */
export const hasParameterRules = ({ root, acl }: Principal): boolean => !root && acl.hasParameters;

/** Whether the policies deny anything, be it a path or a value of a parameter: else no value has to be looked at. */
export const hasDenials = ({ root, acl }: Principal): boolean => !root && (acl.hasDenials || acl.hasParameters);

/** Whether the policies deny a value that an operation uses, by the names under which requests give it. */
export const isUseDenied = ({ root, acl }: Principal, path: string, names: readonly string[], value: ParameterValue): boolean =>
  !root && deniesValue(acl, path, names, value);

/** Whether a policy denies the path in so many words: for what a request comes to, beyond the path it names (decision 29). */
export const isDenied = ({ root, acl }: Principal, path: string): boolean => !root && denies(acl, path);

/**
 * The same where the segment `nameAt` of the path is a name that counts without case, in lower case here: a rule that denies the name with
 * capitals denies it however a request writes it.
 */
export const isNameDenied = ({ root, acl }: Principal, path: string, nameAt: number): boolean =>
  !root && acl.deniesName(path, nameAt);

/** What the principal may do on a path, sorted; `root` or `deny` alone where that is all there is to say. */
export const capabilitiesOf = ({ root, acl }: Principal, path: string): readonly string[] =>
  root ? ['root'] : capabilitiesOn(acl, path);

/** A path that the policies name, or a pattern, and what may be done there. */
export interface NamedRule {
  readonly path: string;
  readonly capabilities: readonly string[];
}

/** All that the principal's policies say; a pattern that is a prefix and nothing else stands without its `*`. */
export function rulesOf({ acl }: Principal): { readonly exact: readonly NamedRule[]; readonly glob: readonly NamedRule[] } {
  const { exact, patterns } = acl.rules();
  const named = ({ path, rule }: PathRule): NamedRule => ({ path, capabilities: capabilityNames(rule) });
  return { exact: exact.map(named), glob: patterns.map(named) };
}
