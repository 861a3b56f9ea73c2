import {
  type Acl,
  capabilitiesOn,
  capabilityNames,
  denies,
  deniesValue,
  type NamePlace,
  pageOf,
  permits,
  permitsItems,
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
 * Returns whether the caller may use a capability on a path.
 * @param path - below `/v1/`, without a trailing slash, for a list too
 * @param parameters - fields of the request's body; absent to skip the parameter rules
 * @param reading - how the operation reads its parameters
 * @param wrapTtlS - requested wrapping TTL in seconds; absent to skip the wrapping bounds
 */
export const allows = (
  { root, acl }: Principal,
  capability: Capability,
  path: string,
  parameters?: Parameters,
  wrapTtlS?: number,
  reading?: ParameterReading,
): boolean => root || permits(acl, { capability, path, parameters, reading, wrapTtlS });

/** Returns whether the rule on the path allows each item of the request's lists. Runs in time slices. */
export const allowsItems = async (
  { root, acl }: Principal,
  path: string,
  parameters: Parameters,
  reading: ParameterReading,
): Promise<boolean> => root || permitsItems(acl, path, parameters, reading);

/** Returns how many names a list below `path` may return; undefined when there is no bound. @see pageOf */
export const pageAllowed = ({ root, acl }: Principal, path: string): ReturnType<typeof pageOf> =>
  root ? undefined : pageOf(acl, path);

/** Returns whether a policy of the caller restricts parameters, so that requests' parameters must be checked. */
export const hasParameterRules = ({ root, acl }: Principal): boolean => !root && acl.hasParameters;

/** Returns whether a policy of the caller can deny a path or a parameter value. If not, values need not be checked. */
export const hasDenials = ({ root, acl }: Principal): boolean => !root && (acl.hasDenials || acl.hasParameters);

/** Returns whether a policy denies a value that an operation uses, under one of the parameter names for it. */
export const isUseDenied = ({ root, acl }: Principal, path: string, names: readonly string[], value: ParameterValue): boolean =>
  !root && deniesValue(acl, path, names, value);

/** Returns whether a policy denies the path explicitly. Used for paths that a request affects besides its own path (decision 87). */
export const isDenied = ({ root, acl }: Principal, path: string): boolean => !root && denies(acl, path);

/**
 * Returns whether a policy denies the path explicitly when a name in it, given in lower case, is compared case-insensitively. So a
 * denial written with capitals matches every spelling of the name.
 */
export const isNameDenied = ({ root, acl }: Principal, path: string, place: NamePlace): boolean =>
  !root && acl.deniesName(path, place);

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
