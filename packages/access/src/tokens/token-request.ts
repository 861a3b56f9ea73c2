import { invalidRequest } from '../errors.ts';
import { isTokenShaped } from './token.ts';
import { lifetimeOf, type RequestedLifetime, smallerBound, type TokenLimits } from './token-lifetime.ts';
import { policiesOf } from './token-policies.ts';
import { encodeTokenRecord, type TokenRecord, type TokenType } from './token-record.ts';
import type { TokenRole } from './token-role.ts';

/** What is asked of a new token. Absent is as good as empty, 0 or false, but for `renewable`. */
export interface TokenRequest {
  /** The token itself, chosen by the caller. */
  readonly id?: string | undefined;
  readonly policies?: readonly string[] | undefined;
  readonly noDefaultPolicy?: boolean | undefined;
  readonly noParent?: boolean | undefined;
  /** True when absent. */
  readonly renewable?: boolean | undefined;
  /** Seconds, as are the next two. */
  readonly ttlS?: number | undefined;
  readonly explicitMaxTtlS?: number | undefined;
  readonly periodS?: number | undefined;
  readonly displayName?: string | undefined;
  readonly meta?: Readonly<Record<string, string>> | undefined;
  /** Requests that it is good for; 0 for any number. */
  readonly numUses?: number | undefined;
  readonly type?: string | undefined;
  readonly entityAlias?: string | undefined;
}

/** Who asks, and where. */
export interface Creator {
  readonly id: string;
  readonly accessorId: string;
  readonly record: TokenRecord;
  /** Has the right `sudo` on the path, or is root. */
  readonly privileged: boolean;
  readonly path: string;
  /** The path makes orphans for everyone who may use it. */
  readonly makesOrphans: boolean;
}

/** What makes a record beside the request: the time, a fresh accessor, the configuration and, where it is made by one, the role. */
export interface TokenCreation {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly accessor: string;
  readonly limits: TokenLimits;
  readonly role: TokenRole | undefined;
}

/** Bounds that keep one token's record small and its look-up quick. */
const [recordBytesMax, generationsMax] = [8 * 1024, 100];

/**
 * The record of a new token, from what is asked, who asks and the time.
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
  const asked = askedLifetime(request, role);
  const endless = root && Object.values(asked).every((seconds) => seconds === 0);
  if (endless && creator.record.expiresMs !== 0)
    throw invalidRequest('expiring root tokens cannot create non-expiring root tokens');
  const { warnings, ...lifetime } = endless ? { ...asked, warnings: [] } : lifetimeOf(asked, limits);
  const generation = orphan ? 0 : creator.record.generation + 1;
  if (generation > generationsMax) throw invalidRequest(`a token has at most ${generationsMax} tokens above it`);
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
    mount: '',
    source: '',
    groups: [],
  };
  if (encodeTokenRecord(record).length > recordBytesMax)
    throw invalidRequest(`policies, meta and display_name of a token come to at most ${recordBytesMax} bytes`);
  return { record, warnings };
}

function refuseUnsupported({ numUses = 0, type = '', entityAlias = '' }: TokenRequest): void {
  if (numUses < 0) throw invalidRequest('number of uses cannot be negative');
  if (type !== '' && type !== 'service' && type !== 'batch')
    throw invalidRequest('invalid token type, expected "service" or "batch"');
  if (entityAlias !== '') throw invalidRequest('entity_alias is not supported');
}

/** A role may settle the type, or say which one it is unless the request names another. */
function typeOf({ type = '' }: TokenRequest, role: TokenRole | undefined): TokenType {
  const asked = type === 'batch' || type === 'service' ? type : undefined;
  switch (role?.type) {
    case 'batch':
    case 'service':
      if (asked !== undefined && asked !== role.type) throw invalidRequest(`the role makes tokens of the type ${role.type} only`);
      return role.type;
    case 'default-batch':
      return asked ?? 'batch';
    default:
      return asked ?? 'service';
  }
}

/** A batch token is never written, so nothing of it can be counted, renewed or chosen. */
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

/** The role's period goes before the request's; of two explicit maxima the smaller holds. */
function askedLifetime(
  { ttlS = 0, explicitMaxTtlS = 0, periodS = 0 }: TokenRequest,
  role: TokenRole | undefined,
): RequestedLifetime {
  return {
    ttlS,
    explicitMaxTtlS: smallerBound(explicitMaxTtlS, role?.explicitMaxTtlS ?? 0),
    periodS: role !== undefined && role.periodS > 0 ? role.periodS : periodS,
  };
}

/** An orphan role settles that its tokens have no parent, so asking for it needs no right. */
function refuseUnprivileged(
  { id = '', noParent, periodS = 0 }: TokenRequest,
  { privileged, makesOrphans }: Creator,
  role: TokenRole | undefined,
): void {
  const need = 'root or sudo privileges required to';
  if (id !== '') {
    if (!privileged) throw invalidRequest(`${need} specify token id`);
    if (/^[sbr]\./.test(id) || id.startsWith('hvs.')) throw invalidRequest("custom token ID cannot have the 's.' prefix");
    // Anything else would fit in no header, or be read there as another text.
    if (!isTokenShaped(id) || !/^[\x21-\x7e]+$/.test(id))
      throw invalidRequest('a token has 1 to 1024 printable ASCII characters');
  }
  if (noParent === true && !makesOrphans && role?.orphan !== true && !privileged)
    throw invalidRequest(`${need} create orphan token`);
  if (periodS !== 0 && !privileged) throw invalidRequest(`${need} create periodic token`);
}

/** `token`, then the name given, with dashes for whatever is no letter, digit or dash. */
const displayNameOf = (given: string): string => `token-${given}`.replace(/[^a-zA-Z0-9-]/g, '-').replace(/-$/, '');
