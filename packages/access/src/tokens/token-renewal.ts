import type { Condition, Store } from '@transitd/storage-fsm';
import { invalidRequest } from '../errors.ts';
import { hasPoliciesOf, readLoginSource } from './login-source.ts';
import { smallerBound, type TokenLimits } from './token-lifetime.ts';
import type { TokenRecord } from './token-record.ts';
import type { TokenRoles } from './token-roles.ts';
import { loginLifetime } from './token-settings.ts';

/** A token's record with the times that hold for a renewal now. */
export interface Renewable {
  readonly record: TokenRecord;
  /** Seconds that a renewal gives which asks for no time. */
  readonly ttlS: number;
  /** Hold while nothing that the renewal rests on has changed. */
  readonly conditions: readonly Condition[];
}

/**
 * Whether a token may be renewed, by what it was made for as that is now: a token of a login only while its user or role is there and
 * gives the same policies, a token of a token role only while the role is there. Period and longest life are those that the user or role has
 * now, as in the peers, so that a withdrawn period ends.
 * @throws AccessError `invalid_request` when it may not, `record_unreadable`; StoreError
 */
export async function renewable(
  record: TokenRecord,
  { store, roles, limits }: { readonly store: Store; readonly roles: TokenRoles; readonly limits: TokenLimits },
): Promise<Renewable> {
  if (record.source !== '') {
    const source = await readLoginSource(store, record);
    if (source === undefined) throw notRenewable('the user or role that it was made for is gone');
    if (!hasPoliciesOf(source, record)) throw notRenewable('the policies of the user or role that it was made for have changed');
    const { periodS, maxTtlS, ttlS } = loginLifetime(source.settings, source.mount, limits);
    return { record: { ...record, periodS, maxTtlS }, ttlS, conditions: source.conditions };
  }
  if (record.role !== '') {
    const found = await roles.find(record.role);
    if (found === undefined) throw notRenewable('the token role by which it was made is gone');
    const { periodS, explicitMaxTtlS } = found.role;
    const renewed = { ...record, periodS, explicitMaxTtlS: smallerBound(record.explicitMaxTtlS, explicitMaxTtlS) };
    return { record: renewed, ttlS: record.ttlS, conditions: [found.condition] };
  }
  return { record, ttlS: record.ttlS, conditions: [] };
}

const notRenewable = (reason: string) => invalidRequest(`lease is not renewable: ${reason}`);
