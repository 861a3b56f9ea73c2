import { invalidRequest } from './errors.ts';
import { policyName } from './policy/policies.ts';
import { isTokenShaped } from './token.ts';
import { lifetimeOf } from './token-lifetime.ts';
import { encodeTokenRecord, type TokenRecord } from './token-record.ts';

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

/** Bounds that keep one token's record small and its look-up quick. */
const [policiesMax, recordBytesMax, generationsMax] = [256, 8 * 1024, 100];

/**
 * The record of a new token, from what is asked, who asks and the time.
 * @throws AccessError `invalid_request`
 */
export function newTokenRecord(
  request: TokenRequest,
  creator: Creator,
  { now, accessor }: { readonly now: number; readonly accessor: string },
): { readonly record: TokenRecord; readonly warnings: readonly string[] } {
  refuseUnsupported(request);
  refuseUnprivileged(request, creator);
  const policies = policiesOf(request, creator);
  const root = policies.includes('root');
  const orphan = creator.makesOrphans || request.noParent === true;
  const asked = {
    ttlS: request.ttlS ?? 0,
    explicitMaxTtlS: request.explicitMaxTtlS ?? 0,
    periodS: request.periodS ?? 0,
  };
  const endless = root && Object.values(asked).every((seconds) => seconds === 0);
  if (endless && creator.record.expiresMs !== 0)
    throw invalidRequest('expiring root tokens cannot create non-expiring root tokens');
  const { warnings, ...lifetime } = endless ? { ...asked, warnings: [] } : lifetimeOf(asked);
  const generation = orphan ? 0 : creator.record.generation + 1;
  if (generation > generationsMax) throw invalidRequest(`a token has at most ${generationsMax} tokens above it`);
  const record: TokenRecord = {
    accessor,
    policies,
    displayName: displayNameOf(request.displayName ?? ''),
    meta: request.meta ?? {},
    path: creator.path,
    createdMs: now,
    ...lifetime,
    expiresMs: endless ? 0 : now + lifetime.ttlS * 1000,
    renewable: !endless && (request.renewable ?? true),
    parent: orphan ? '' : creator.id,
    parentAccessorId: orphan ? '' : creator.accessorId,
    generation,
    usesLeft: request.numUses ?? 0,
    renewedMs: 0,
  };
  if (encodeTokenRecord(record).length > recordBytesMax)
    throw invalidRequest(`policies, meta and display_name of a token come to at most ${recordBytesMax} bytes`);
  return { record, warnings };
}

function refuseUnsupported({ numUses = 0, type = '', entityAlias = '' }: TokenRequest): void {
  if (numUses < 0) throw invalidRequest('number of uses cannot be negative');
  if (type === 'batch') throw invalidRequest('batch tokens are not supported');
  if (type !== '' && type !== 'service') throw invalidRequest('invalid token type, expected "service"');
  if (entityAlias !== '') throw invalidRequest('entity_alias is not supported');
}

function refuseUnprivileged({ id = '', noParent, periodS = 0 }: TokenRequest, { privileged, makesOrphans }: Creator): void {
  const need = 'root or sudo privileges required to';
  if (id !== '') {
    if (!privileged) throw invalidRequest(`${need} specify token id`);
    if (/^[sbr]\./.test(id) || id.startsWith('hvs.')) throw invalidRequest("custom token ID cannot have the 's.' prefix");
    // Anything else would fit in no header, or be read there as another text.
    if (!isTokenShaped(id) || !/^[\x21-\x7e]+$/.test(id))
      throw invalidRequest('a token has 1 to 1024 printable ASCII characters');
  }
  if (noParent === true && !makesOrphans && !privileged) throw invalidRequest(`${need} create orphan token`);
  if (periodS !== 0 && !privileged) throw invalidRequest(`${need} create periodic token`);
}

function policiesOf({ policies = [], noDefaultPolicy = false }: TokenRequest, { record: parent, privileged }: Creator): string[] {
  const held = parent.policies;
  const named = [
    ...new Set(
      policies
        .map((name) => name.trim())
        .filter((name) => name !== '')
        .map(policyName),
    ),
  ];
  if (named.length > policiesMax) throw invalidRequest(`a token has at most ${policiesMax} policies`);
  if (named.length === 0) return noDefaultPolicy ? held.filter((name) => name !== 'default') : [...held];
  if (named.includes('root')) {
    if (!held.includes('root')) throw invalidRequest('root tokens may not be created without parent token being root');
    return ['root'];
  }
  if (!privileged && !named.every((name) => held.includes(name))) throw invalidRequest('child policies must be subset of parent');
  const adds = !noDefaultPolicy && (privileged || held.includes('default'));
  return [...new Set(adds ? [...named, 'default'] : named)].sort();
}

/** `token`, then the name given, with dashes for whatever is no letter, digit or dash. */
const displayNameOf = (given: string): string => `token-${given}`.replace(/[^a-zA-Z0-9-]/g, '-').replace(/-$/, '');
