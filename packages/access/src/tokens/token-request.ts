import { invalidRequest } from '../values/errors.ts';
import { isTokenShaped } from './token.ts';
import { lifetimeOf, type RequestedLifetime, smallerBound, type TokenLimits } from './token-lifetime.ts';
import { policiesOf } from './token-policies.ts';
import { encodeTokenRecord, type TokenRecord, type TokenType } from './token-record.ts';
import type { TokenRole } from './token-role.ts';

/** Request for a new token. An absent member means empty, 0 or false, except `renewable`. */
export interface TokenRequest {
  /** A token chosen by the caller. */
  readonly id?: string | undefined;
  readonly policies?: readonly string[] | undefined;
  readonly noDefaultPolicy?: boolean | undefined;
  readonly noParent?: boolean | undefined;
  /** True when absent. */
  readonly renewable?: boolean | undefined;
  /** Seconds, like `explicitMaxTtlS` and `periodS`. */
  readonly ttlS?: number | undefined;
  readonly explicitMaxTtlS?: number | undefined;
  readonly periodS?: number | undefined;
  readonly displayName?: string | undefined;
  readonly meta?: Readonly<Record<string, string>> | undefined;
  /** Maximum number of uses; 0 for no limit. */
  readonly numUses?: number | undefined;
  readonly type?: string | undefined;
  readonly entityAlias?: string | undefined;
}

/** The token that creates another, and the path of the request. */
export interface Creator {
  readonly id: string;
  readonly accessorId: string;
  readonly record: TokenRecord;
  /** Whether the creating token has `sudo` on the path or is root. */
  readonly privileged: boolean;
  readonly path: string;
  /** Whether every token made on the path is an orphan. */
  readonly makesOrphans: boolean;
}

/** Inputs of a new record besides the request. `role` is the token role, if the request names one. */
interface TokenCreation {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly accessor: string;
  readonly limits: TokenLimits;
  readonly role: TokenRole | undefined;
}

/** Maximum size of a token's record, in bytes, and maximum number of its ancestors, so that lookups are fast. */
const [recordBytesMax, generationsMax] = [8 * 1024, 100];

/**
 * Returns the record of a new token.
 * @throws AccessError `invalid_request`
 */
export function newTokenRecord(
  request: TokenRequest,
  creator: Creator,
  { now, accessor, limits, role }: TokenCreation,
): { readonly record: TokenRecord; readonly warnings: readonly string[] } {
  refuseUnsupported(request);
  refuseUnprivileged(request, creator, role);
  const type = typeOf(request, role);
  const usesLeft = smallerBound(request.numUses ?? 0, role?.numUses ?? 0);
  if (type === 'batch') refuseForBatch({ ...request, numUses: usesLeft });
  const policies = policiesOf(request, creator, role);
  const root = policies.includes('root');
  if (root && type === 'batch') throw invalidRequest('batch tokens cannot be root tokens');
  const orphan = creator.makesOrphans || request.noParent === true || role?.orphan === true;
  const requested = requestedLifetime(request, role);
  const endless = root && Object.values(requested).every((seconds) => seconds === 0);
  if (endless && creator.record.expiresMs !== 0)
    throw invalidRequest('expiring root tokens cannot create non-expiring root tokens');
  const { warnings, ...lifetime } = endless ? { ...requested, warnings: [] } : lifetimeOf(requested, limits);
  const generation = orphan ? 0 : creator.record.generation + 1;
  if (generation > generationsMax) throw invalidRequest(`a token can have at most ${generationsMax} ancestors`);
  const record: TokenRecord = {
    type,
    accessor: type === 'batch' ? '' : accessor,
    policies,
    displayName: displayNameOf(request.displayName ?? ''),
    meta: request.meta ?? {},
    path: role === undefined || role.pathSuffix === '' ? creator.path : `${creator.path}/${role.pathSuffix}`,
    createdMs: now,
    ...lifetime,
    expiresMs: endless ? 0 : now + lifetime.ttlS * 1000,
    renewable: !endless && type === 'service' && (role?.renewable ?? true) && (request.renewable ?? true),
    parent: orphan ? '' : creator.id,
    parentAccessorId: orphan ? '' : creator.accessorId,
    generation,
    usesLeft,
    renewedMs: 0,
    maxTtlS: 0,
    role: role?.name ?? '',
    boundCidrs: role === undefined || role.boundCidrs.length === 0 ? creator.record.boundCidrs : role.boundCidrs,
    boundCertificate: creator.record.boundCertificate,
    mount: '',
    source: '',
    groups: [],
  };
  if (encodeTokenRecord(record).length > recordBytesMax)
    throw invalidRequest(`policies, meta and display_name of a token must have at most ${recordBytesMax} bytes`);
  return { record, warnings };
}

function refuseUnsupported({ numUses = 0, type = '', entityAlias = '' }: TokenRequest): void {
  if (numUses < 0) throw invalidRequest('number of uses cannot be negative');
  if (type !== '' && type !== 'service' && type !== 'batch')
    throw invalidRequest('invalid token type, expected "service" or "batch"');
  if (entityAlias !== '') throw invalidRequest('entity_alias is not supported');
}

/** Returns the token type: a role fixes it or sets a default that the request may override. */
function typeOf({ type = '' }: TokenRequest, role: TokenRole | undefined): TokenType {
  const requested = type === 'batch' || type === 'service' ? type : undefined;
  switch (role?.type) {
    case 'batch':
    case 'service':
      if (requested !== undefined && requested !== role.type) throw invalidRequest(`the role only creates ${role.type} tokens`);
      return role.type;
    case 'default-batch':
      return requested ?? 'batch';
    default:
      return requested ?? 'service';
  }
}

/** Refuses options that need a stored record, which a batch token does not have. */
function refuseForBatch({ id = '', explicitMaxTtlS = 0, periodS = 0, numUses = 0 }: TokenRequest): void {
  const set = Object.entries({
    id: id !== '',
    explicit_max_ttl: explicitMaxTtlS !== 0,
    period: periodS !== 0,
    num_uses: numUses !== 0,
  });
  const first = set.find(([, isSet]) => isSet);
  if (first !== undefined) throw invalidRequest(`batch tokens cannot have "${first[0]}" set`);
}

/** Combines request and role: the smaller period and the smaller explicit maximum apply. A renewal has the role's period. */
function requestedLifetime(
  { ttlS = 0, explicitMaxTtlS = 0, periodS = 0 }: TokenRequest,
  role: TokenRole | undefined,
): RequestedLifetime {
  return {
    ttlS,
    explicitMaxTtlS: smallerBound(explicitMaxTtlS, role?.explicitMaxTtlS ?? 0),
    periodS: smallerBound(periodS, role?.periodS ?? 0),
  };
}

/** Refuses options that need privileges. Requesting an orphan needs none if the role only creates orphans. */
function refuseUnprivileged(
  { id = '', noParent, periodS = 0 }: TokenRequest,
  { privileged, makesOrphans }: Creator,
  role: TokenRole | undefined,
): void {
  const need = 'root or sudo privileges required to';
  if (id !== '') {
    if (!privileged) throw invalidRequest(`${need} specify token id`);
    if (/^[sbr]\./.test(id) || id.startsWith('hvs.')) throw invalidRequest("custom token ID cannot have the 's.' prefix");
    // Other characters cannot be sent in a header or would be decoded differently.
    if (!isTokenShaped(id) || !/^[\x21-\x7e]+$/.test(id))
      throw invalidRequest('a token must have 1 to 1024 printable ASCII characters');
  }
  if (noParent === true && !makesOrphans && role?.orphan !== true && !privileged)
    throw invalidRequest(`${need} create orphan token`);
  if (periodS !== 0 && !privileged) throw invalidRequest(`${need} create periodic token`);
}

/** Returns `token-` and the requested name, with dashes for all characters except letters, digits and dashes. */
const displayNameOf = (given: string): string => `token-${given}`.replace(/[^a-zA-Z0-9-]/g, '-').replace(/-$/, '');
