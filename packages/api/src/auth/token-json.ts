import { type TokenRecord, ttlOf } from '@transitd/access';
import { boolean, integer, list, map, object, orNull, string, time } from '@transitd/http';
import { metaOf } from './auth-json.ts';

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
