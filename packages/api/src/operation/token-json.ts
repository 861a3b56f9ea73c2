import { type Granted, type Issued, type TokenRecord, ttlOf } from '@transitd/access';
import { authReply, boolean, integer, list, map, orNull, type Reply, string, time } from '@transitd/http';
import { shown, timeText } from './shown.ts';

const seconds = (ms: number): number => Math.floor(ms / 1000);

interface TokenView {
  /** The token ID; empty if only the accessor may be shown. */
  readonly token: string;
  readonly record: TokenRecord;
  readonly nowMs: number;
}

/** The properties of a token. Dates are RFC 3339 or Unix seconds; durations are in seconds. */
export const shownToken = shown<TokenView>({
  accessor: [string, ({ record }) => record.accessor],
  'bound_cidrs?': [list(string), ({ record }) => (record.boundCidrs.length > 0 ? record.boundCidrs : undefined)],
  'bound_certificate?': [string, ({ record }) => record.boundCertificate || undefined],
  creation_time: [integer, ({ record }) => seconds(record.createdMs)],
  creation_ttl: [integer, ({ record }) => record.ttlS],
  display_name: [string, ({ record }) => record.displayName],
  entity_id: [{ const: '' }, () => ''],
  expire_time: [orNull(time), ({ record }) => (record.expiresMs === 0 ? null : timeText(record.expiresMs))],
  explicit_max_ttl: [integer, ({ record }) => record.explicitMaxTtlS],
  id: [string, ({ token }) => token],
  issue_time: [time, ({ record }) => timeText(record.createdMs)],
  'last_renewal?': [time, ({ record }) => timeText(record.renewedMs || undefined)],
  'last_renewal_time?': [integer, ({ record }) => (record.renewedMs === 0 ? undefined : seconds(record.renewedMs))],
  meta: [orNull(map(string)), ({ record }) => metaOf(record)],
  num_uses: [integer, ({ record }) => Math.max(0, record.usesLeft)],
  orphan: [boolean, ({ record }) => record.parent === ''],
  path: [string, ({ record }) => record.path],
  'period?': [integer, ({ record }) => record.periodS || undefined],
  policies: [list(string), ({ record }) => record.policies],
  renewable: [boolean, ({ record }) => record.renewable],
  'role?': [string, ({ record }) => record.role || undefined],
  ttl: [integer, ({ record, nowMs }) => ttlOf(record, nowMs)],
  type: [string, ({ record }) => record.type],
});

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
export const tokenReply = (granted: Issued): Reply =>
  authReply(authJson(granted.token, granted), granted.warnings, {
    token: granted.token,
    accessor: granted.record.accessor,
  });
