import type { Granted, TokenRecord } from '@transitd/access';
import { authReply, type Reply } from '@transitd/http';

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

export const metaOf = ({ meta }: TokenRecord): TokenRecord['meta'] | null => (Object.keys(meta).length === 0 ? null : meta);

/** Returns the reply that shows a new token. No other reply shows it. */
export const tokenReply = (granted: Granted & { readonly token: string }, warnings: readonly string[]): Reply =>
  authReply(authJson(granted.token, granted), [...warnings, ...granted.warnings], {
    token: granted.token,
    accessor: granted.record.accessor,
  });
