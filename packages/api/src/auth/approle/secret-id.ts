import { randomUUID } from 'node:crypto';
import { checkCidrs, decodeJson, encodeJson, invalidRequest } from '@transitd/access';
import type { Condition, Write } from '@transitd/storage-fsm';
import type { AppRole } from './role.ts';

const metaBytesMax = 4096;

/** The record of a secret id, without its text. Times are in milliseconds since the epoch. */
export interface SecretId {
  readonly accessor: string;
  readonly roleKey: string;
  readonly createdMs: number;
  readonly ttlS: number;
  /** 0 for no expiry. */
  readonly expiresMs: number;
  readonly numUses: number;
  /** Remaining number of logins; 0 for no limit. */
  readonly usesLeft: number;
  readonly cidrs: readonly string[];
  readonly tokenBoundCidrs: readonly string[];
  readonly meta: Readonly<Record<string, string>>;
}

/** Request for a new secret id. */
export interface SecretIdRequest {
  /** A secret id chosen by the caller; random when absent. */
  readonly secretId?: string | undefined;
  readonly cidrs?: readonly string[] | undefined;
  readonly tokenBoundCidrs?: readonly string[] | undefined;
  readonly numUses?: number | undefined;
  readonly ttlS?: number | undefined;
  readonly meta?: Readonly<Record<string, string>> | undefined;
}

/** How a request names a secret id. */
export type SecretIdName = { readonly secretId: string } | { readonly accessor: string };

const secretExample: SecretId = {
  accessor: '',
  roleKey: '',
  createdMs: 0,
  ttlS: 0,
  expiresMs: 0,
  numUses: 0,
  usesLeft: 0,
  cidrs: [],
  tokenBoundCidrs: [],
  meta: {},
};

/** @throws AccessError `record_unreadable` */
export const decodeSecretId = (stored: Uint8Array): SecretId => decodeJson(stored, secretExample);

/** Returns the record of a new secret id. @throws AccessError `invalid_request` */
export function newSecret(role: AppRole, request: SecretIdRequest, now: number): SecretId {
  const numUses = capped(request.numUses, role.secretIdNumUses, 'num_uses');
  const ttlS = capped(request.ttlS, role.secretIdTtlS, 'ttl');
  const meta = request.meta ?? {};
  if (Buffer.byteLength(JSON.stringify(meta)) > metaBytesMax)
    throw invalidRequest(`metadata must have at most ${metaBytesMax} bytes`);
  return {
    accessor: randomUUID(),
    roleKey: role.key,
    createdMs: now,
    ttlS,
    expiresMs: ttlS === 0 ? 0 : now + ttlS * 1000,
    numUses,
    usesLeft: numUses,
    cidrs: checkCidrs('cidr_list', request.cidrs ?? []),
    tokenBoundCidrs: checkCidrs('token_bound_cidrs', request.tokenBoundCidrs ?? []),
    meta,
  };
}

/**
 * Returns the requested value; if the request has none, the limit of the role. 0 means no limit.
 * @throws AccessError `invalid_request` above the limit
 */
function capped(requested: number | undefined, most: number, field: string): number {
  if (requested === undefined) return most;
  if (requested < 0) throw invalidRequest(`'${field}' cannot be negative`);
  if (most > 0 && (requested === 0 || requested > most)) throw invalidRequest(`'${field}' cannot exceed the limit of the role`);
  return requested;
}

/** Returns the writes that count one use. The last use deletes the secret id. */
export function useWrites(
  { value, condition }: { readonly value: SecretId; readonly condition: Condition },
  pointer: string,
): Write[] {
  if (value.usesLeft === 0) return [];
  if (value.usesLeft > 1) return [{ path: condition.path, value: encodeJson({ ...value, usesLeft: value.usesLeft - 1 }) }];
  return [condition.path, pointer].map((path) => ({ path, value: null }));
}
