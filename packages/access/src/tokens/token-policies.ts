import { policyName, quotedPolicyName, unassignable } from '../policy/policies.ts';
import { invalidRequest } from '../values/errors.ts';
import { globMatches } from '../values/glob.ts';
import type { TokenRecord } from './token-record.ts';
import type { TokenRole } from './token-role.ts';

const policiesMax = 256;

interface PolicyRequest {
  readonly policies?: readonly string[] | undefined;
  readonly noDefaultPolicy?: boolean | undefined;
}

interface Creator {
  readonly record: TokenRecord;
  readonly privileged: boolean;
}

/** Returns canonical policy names, sorted and without duplicates. @throws AccessError `invalid_request` */
export function policyNames(policies: readonly string[]): string[] {
  const given = policies.map((name) => name.trim()).filter((name) => name !== '');
  const named = [...new Set(given.map(policyName))].sort();
  if (named.length > policiesMax) throw invalidRequest(`a token can have at most ${policiesMax} policies`);
  const forbidden = named.find((name) => unassignable.includes(name));
  if (forbidden !== undefined) throw invalidRequest(`the policy ${forbidden} cannot be assigned to a token`);
  return named;
}

/**
 * Returns the policies of a new token. If the role restricts policies, they must be among those that the role allows. Otherwise they
 * must be among the policies of the creator, unless the creator is privileged. A token inherits its creator's policies only if the
 * request has no list of policies: a list of blank names gives only `default`. With `noDefaultPolicy`, the token does not
 * get `default`, even if it was requested or is inherited; with that of the role, `default` is only not added.
 * @throws AccessError `invalid_request`
 */
export function policiesOf(
  { policies = [], noDefaultPolicy = false }: PolicyRequest,
  creator: Creator,
  role: TokenRole | undefined,
): string[] {
  const { record: parent, privileged } = creator;
  const held = parent.policies;
  const requested = policyNames(policies);
  const withoutDefault = noDefaultPolicy || role?.noDefaultPolicy === true;
  const restricting = role !== undefined && isRestricting(role) ? role : undefined;
  const requestsNone = policies.length === 0;
  const inherits = requestsNone && (restricting === undefined || !isAllowing(restricting));
  const named = inherits ? held : requestsNone ? policyNames(restricting?.allowedPolicies ?? []) : requested;
  if (named.includes('root') && !held.includes('root'))
    throw invalidRequest('root tokens may not be created without parent token being root');
  if (restricting !== undefined) refuseOutside(restricting, named, { withoutDefault });
  else if (!privileged && !named.every((name) => held.includes(name)))
    throw invalidRequest('child policies must be subset of parent');
  if (named.includes('root')) return ['root'];
  if (noDefaultPolicy) return named.filter((name) => name !== 'default');
  if (inherits) return [...named];
  const adds =
    !withoutDefault &&
    (restricting === undefined ? privileged || held.includes('default') : !isDisallowed(restricting, 'default'));
  return [...new Set(adds ? [...named, 'default'] : named)].sort();
}

const isAllowing = ({ allowedPolicies, allowedPoliciesGlob }: TokenRole): boolean =>
  allowedPolicies.length + allowedPoliciesGlob.length > 0;

const isRestricting = (role: TokenRole): boolean =>
  isAllowing(role) || role.disallowedPolicies.length + role.disallowedPoliciesGlob.length > 0;

const isDisallowed = ({ disallowedPolicies, disallowedPoliciesGlob }: TokenRole, name: string): boolean =>
  disallowedPolicies.includes(name) || disallowedPoliciesGlob.some((glob) => globMatches(glob, name));

function refuseOutside(
  role: TokenRole,
  named: readonly string[],
  { withoutDefault }: { readonly withoutDefault: boolean },
): void {
  const allowed = (name: string): boolean =>
    role.allowedPolicies.includes(name) ||
    role.allowedPoliciesGlob.some((glob) => globMatches(glob, name)) ||
    // The request may also name `default` if it is added anyway.
    (name === 'default' && !withoutDefault);
  if (isAllowing(role) && !named.every(allowed))
    throw invalidRequest("token policies must be subset of the role's allowed policies");
  const forbidden = named.find((name) => isDisallowed(role, name));
  if (forbidden !== undefined)
    throw invalidRequest(`token policy ${quotedPolicyName(forbidden) ?? 'named there'} is disallowed by this role`);
}
