import { type Granted, type TokenRecord, ttlOf } from '@transitd/access';
import { authReply, boolean, integer, list, map, object, orNull, type Reply, string, time } from '@transitd/http';

const seconds = (ms: number): number => Math.floor(ms / 1000);

/** Returns the properties of a token as JSON. @param token - the token ID; empty if only the accessor may be shown */
export function tokenJson(token: string, record: TokenRecord, nowMs: number): object {
  const { periodS, renewedMs } = record;
  return {
    accessor: record.accessor,
    ...(record.boundCidrs.length > 0 && { bound_cidrs: record.boundCidrs }),
    creation_time: seconds(record.createdMs),
    creation_ttl: record.ttlS,
    display_name: record.displayName,
    entity_id: '',
    expire_time: record.expiresMs === 0 ? null : new Date(record.expiresMs).toISOString(),
    explicit_max_ttl: record.explicitMaxTtlS,
    id: token,
    issue_time: new Date(record.createdMs).toISOString(),
    ...(renewedMs !== 0 && { last_renewal: new Date(renewedMs).toISOString(), last_renewal_time: seconds(renewedMs) }),
    meta: metaOf(record),
    num_uses: Math.max(0, record.usesLeft),
    orphan: record.parent === '',
    path: record.path,
    ...(periodS !== 0 && { period: periodS }),
    policies: record.policies,
    renewable: record.renewable,
    ...(record.role !== '' && { role: record.role }),
    ttl: ttlOf(record, nowMs),
    type: record.type,
  };
}

/** Schema of `tokenJson`. Dates are RFC 3339 or Unix seconds; durations are in seconds. */
export const tokenSchema = object(
  {
    accessor: string,
    creation_time: integer,
    creation_ttl: integer,
    display_name: string,
    entity_id: { const: '' },
    expire_time: orNull(time),
    explicit_max_ttl: integer,
    id: string,
    issue_time: time,
    meta: orNull(map(string)),
    num_uses: integer,
    orphan: boolean,
    path: string,
    policies: list(string),
    renewable: boolean,
    ttl: integer,
    type: string,
  },
  { bound_cidrs: list(string), last_renewal: time, last_renewal_time: integer, period: integer, role: string },
);

/** Returns the member `auth` for a token. @param token - token ID; empty if the request contained only the accessor */
export function authJson(token: string, { record, ttlS }: Granted): object {
  return {
    client_token: token,
    accessor: record.accessor,
    policies: record.policies,
    token_policies: record.policies,
    metadata: metaOf(record),
    lease_duration: ttlS,
    renewable: record.renewable,
    entity_id: '',
    token_type: record.type,
    orphan: record.parent === '',
    mfa_requirement: null,
    num_uses: Math.max(0, record.usesLeft),
  };
}

const metaOf = ({ meta }: TokenRecord): TokenRecord['meta'] | null => (Object.keys(meta).length === 0 ? null : meta);

/** Returns the reply that shows a new token. No other reply shows it. */
export const tokenReply = (granted: Granted & { readonly token: string }, warnings: readonly string[]): Reply =>
  authReply(authJson(granted.token, granted), [...warnings, ...granted.warnings], {
    token: granted.token,
    accessor: granted.record.accessor,
  });
