import type { Condition, Write } from '@transitd/storage-fsm';
import { mountReference } from '../mounts/auth-mount.ts';
import type { StoredMount } from '../mounts/auth-mounts.ts';
import { invalidRequest } from '../values/errors.ts';
import type { TokenLimits } from './token-lifetime.ts';
import { policyNames } from './token-policies.ts';
import { encodeTokenRecord, type TokenRecord } from './token-record.ts';
import { loginLifetime, type TokenSettings } from './token-settings.ts';

/** A successful login, and the token to make for it. */
export interface LoginGrant {
  readonly mount: StoredMount;
  readonly settings: TokenSettings;
  /** Groups of the user, and the policies that these groups add to the policies of the settings. */
  readonly groups?: { readonly names: readonly string[]; readonly policies: readonly string[] };
  readonly displayName: string;
  readonly meta: Readonly<Record<string, string>>;
  /** Path of the login request. */
  readonly path: string;
  /** SHA-256 in hex of the client certificate that the token is bound to; absent for none. */
  readonly boundCertificate?: string;
  /** Condition on the user's or role's record. The token can be renewed while this record exists. */
  readonly source: Condition;
  /** Conditions on the other records that the login read, besides the method's, and writes that commit with the token. */
  readonly conditions?: readonly Condition[];
  readonly writes?: readonly Write[];
}

const recordBytesMax = 8 * 1024;

/** Returns the record of a login's token. @throws AccessError `invalid_request` */
export function loginRecord(
  { mount, settings, groups, displayName, meta, path, source, boundCertificate = '' }: LoginGrant,
  { now, accessor, limits }: { readonly now: number; readonly accessor: string; readonly limits: TokenLimits },
): { readonly record: TokenRecord; readonly warnings: readonly string[] } {
  const named = policyNames([...settings.policies, ...(groups?.policies ?? [])]);
  if (named.includes('root')) throw invalidRequest('auth methods cannot create root tokens');
  const { warnings, ...lifetime } = loginLifetime(settings, mount, limits);
  const type = settings.type === 'batch' ? 'batch' : 'service';
  const record: TokenRecord = {
    type,
    accessor: type === 'batch' ? '' : accessor,
    policies: settings.noDefaultPolicy ? named : [...new Set([...named, 'default'])].sort(),
    displayName,
    meta,
    path,
    createdMs: now,
    ...lifetime,
    expiresMs: now + lifetime.ttlS * 1000,
    renewable: type === 'service',
    parent: '',
    parentAccessorId: '',
    generation: 0,
    usesLeft: settings.numUses,
    renewedMs: 0,
    role: '',
    boundCidrs: settings.boundCidrs,
    boundCertificate,
    mount: mountReference(mount),
    source: source.path,
    groups: type === 'batch' ? [] : (groups?.names ?? []),
  };
  if (encodeTokenRecord(record).length > recordBytesMax)
    throw invalidRequest(`policies and meta of a token must have at most ${recordBytesMax} bytes`);
  return { record, warnings };
}
