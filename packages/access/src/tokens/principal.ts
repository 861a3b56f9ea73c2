import type { PolicyRule } from '@transitd/storage-fsm';
import {
  type Acl,
  capabilitiesOn,
  capabilityNames,
  type Denial,
  denialOf,
  explicitDenialOf,
  grantsOn,
  itemDenialOf,
  type NamePlace,
  pageOf,
  valueDenialOf,
} from '../policy/acl.ts';
import type { Capability } from '../policy/capability.ts';
import type { Parameters, ParameterValue } from '../policy/parameter-values.ts';
import type { ParameterReading } from '../policy/parameters.ts';
import type { PathRule } from '../policy/policy.ts';
import type { TokenRecord } from './token-record.ts';

/** The authenticated caller of a request: its token and its compiled policies. */
export interface Principal {
  /** Keyed hash of the token. It identifies the token and is not a credential. */
  readonly id: string;
  readonly record: TokenRecord;
  /** Whether the token has the policy `root`, which permits everything. */
  readonly root: boolean;
  readonly acl: Acl;
  /**
   * When the token, one of its ancestors or a rule of its policies expires, in milliseconds since the epoch; infinite when none
   * does.
   */
  readonly goodUntilMs: number;
}

/**
 * Returns why the policies refuse the caller a capability on a path; undefined if they grant it.
 * @param path - below `/v1/`, without a trailing slash, for a list too
 * @param parameters - fields of the request's body; absent to skip the parameter rules
 * @param reading - how the operation reads its parameters
 * @param wrapTtlS - requested wrapping TTL in seconds; absent to skip the wrapping bounds
 */
export const denial = (
  { root, acl }: Principal,
  capability: Capability,
  path: string,
  parameters?: Parameters,
  wrapTtlS?: number,
  reading?: ParameterReading,
): Denial | undefined => (root ? undefined : denialOf(acl, { capability, path, parameters, reading, wrapTtlS }));

/**
 * Returns why the policies do not let a node use a capability on a path later, because of the caller's request with these parameters.
 * Of the rules about parameters, only those about conditions hold: the other parameters are those of the request.
 */
export const laterDenial = (
  { root, acl }: Principal,
  capability: Capability,
  path: string,
  parameters: Parameters,
  reading: ParameterReading | undefined,
): Denial | undefined => (root ? undefined : denialOf(acl, { capability, path, parameters, reading, isLater: true }));

/** Returns whether the caller may use a capability on a path. @see denial */
export const allows = (principal: Principal, capability: Capability, path: string): boolean =>
  denial(principal, capability, path) === undefined;

/** Returns why the rule on the path refuses an item of the request's lists; undefined if it allows each. Runs in time slices. */
export const itemDenial = async (
  { root, acl }: Principal,
  path: string,
  parameters: Parameters,
  reading: ParameterReading,
): Promise<Denial | undefined> => (root ? undefined : itemDenialOf(acl, path, parameters, reading));

/**
 * Returns the rules that grant a request that the policies allow. The policy `root` has one for every path.
 * @param wanted - capabilities, any of which is enough
 */
export const grants = ({ root, acl }: Principal, path: string, wanted: readonly Capability[]): readonly PolicyRule[] =>
  root ? rootRule : grantsOn(acl, path, wanted);

const rootRule: readonly PolicyRule[] = [{ policy: 'root', path: '*' }];

/** Returns how many names a list below `path` may return; undefined when there is no bound. @see pageOf */
export const pageAllowed = ({ root, acl }: Principal, path: string): ReturnType<typeof pageOf> =>
  root ? undefined : pageOf(acl, path);

/** Returns whether a policy of the caller restricts parameters, so that requests' parameters must be checked. */
export const hasParameterRules = ({ root, acl }: Principal): boolean => !root && acl.hasParameters;

/** Returns whether a policy of the caller can deny a path or a parameter value. If not, values need not be checked. */
export const hasDenials = ({ root, acl }: Principal): boolean => !root && (acl.hasDenials || acl.hasParameters);

/** Returns the denial of a value that an operation uses, under one of the parameter names for it; undefined if none denies it. */
export const useDenial = (
  { root, acl }: Principal,
  path: string,
  names: readonly string[],
  value: ParameterValue,
): Denial | undefined => (root ? undefined : valueDenialOf(acl, path, names, value));

/** Returns the explicit denial of a path. Used for paths that a request affects besides its own path (decision 87). */
export const pathDenial = ({ root, acl }: Principal, path: string): Denial | undefined =>
  root ? undefined : explicitDenialOf(acl, path);

/**
 * Returns the explicit denial of a path when a name in it, given in lower case, is compared case-insensitively. So a denial written with
 * capitals matches every spelling of the name.
 */
export function nameDenial({ root, acl }: Principal, path: string, place: NamePlace): Denial | undefined {
  const rule = root ? undefined : acl.nameDenial(path, place);
  return rule && { constraint: 'deny', rule };
}

/** Returns the caller's capabilities on a path, sorted; `root` alone for root, `deny` alone for none. */
export const capabilitiesOf = ({ root, acl }: Principal, path: string): readonly string[] =>
  root ? ['root'] : capabilitiesOn(acl, path);

/** A path or pattern in the policies, with its capabilities. */
export interface NamedRule {
  readonly path: string;
  readonly capabilities: readonly string[];
}

/** Returns all rules of the caller's policies. A pattern that is only a prefix is returned without its `*`. */
export function rulesOf({ acl }: Principal): { readonly exact: readonly NamedRule[]; readonly glob: readonly NamedRule[] } {
  const { exact, patterns } = acl.rules();
  const named = ({ path, rule }: PathRule): NamedRule => ({ path, capabilities: capabilityNames(rule) });
  return { exact: exact.map(named), glob: patterns.map(named) };
}
