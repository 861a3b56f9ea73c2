import type { Condition, Store } from '@transitd/storage-fsm';
import { invalidRequest } from '../values/errors.ts';
import { hasPoliciesOf, readLoginSource } from './login-source.ts';
import { smallerBound, type TokenLimits } from './token-lifetime.ts';
import type { TokenRecord } from './token-record.ts';
import type { TokenRoles } from './token-roles.ts';
import { loginLifetime } from './token-settings.ts';

/** A token's record with the limits that apply to a renewal now. */
export interface Renewable {
  readonly record: TokenRecord;
  /** TTL in seconds of a renewal that requests none. */
  readonly ttlS: number;
  /** Conditions that hold while the records that the renewal depends on are unchanged. */
  readonly conditions: readonly Condition[];
}

/**
 * Checks whether a token may be renewed. A token of a login may be renewed only while its user or role exists and grants the same
 * policies; a token of a token role, only while the role exists. As in Vault and OpenBao, the renewal uses the present period and
 * maximum TTL of the user or role, so that a withdrawn period ends.
 * @throws AccessError `invalid_request` when it may not be renewed, `record_unreadable`; StoreError
 */
export async function renewable(
  record: TokenRecord,
  { store, roles, limits }: { readonly store: Store; readonly roles: TokenRoles; readonly limits: TokenLimits },
): Promise<Renewable> {
  if (record.source !== '') {
    const source = await readLoginSource(store, record);
    if (source === undefined) throw notRenewable('the user or role of its login no longer exists');
    if (!hasPoliciesOf(source, record)) throw notRenewable('the policies of the user or role of its login have changed');
    const { periodS, maxTtlS, ttlS } = loginLifetime(source.settings, source.mount, limits);
    return { record: { ...record, periodS, maxTtlS }, ttlS, conditions: source.conditions };
  }
  if (record.role !== '') {
    const found = await roles.find(record.role);
    if (found === undefined) throw notRenewable('its token role no longer exists');
    const { periodS, explicitMaxTtlS } = found.role;
    const renewed = { ...record, periodS, explicitMaxTtlS: smallerBound(record.explicitMaxTtlS, explicitMaxTtlS) };
    return { record: renewed, ttlS: record.ttlS, conditions: [found.condition] };
  }
  return { record, ttlS: record.ttlS, conditions: [] };
}

const notRenewable = (reason: string) => invalidRequest(`lease is not renewable: ${reason}`);
