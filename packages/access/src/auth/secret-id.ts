import { randomUUID } from 'node:crypto';
import type { Condition, Write } from '@transitd/storage-fsm';
import { invalidRequest } from '../errors.ts';
import { decodeJson, encodeJson } from '../json-record.ts';
import { checkCidrs } from '../values/cidr.ts';
import type { AppRole } from './approle-role.ts';

const metaBytesMax = 4096;

/** A secret id as it is stored: its own text is not. Times are milliseconds since the epoch. */
export interface SecretId {
  readonly accessor: string;
  readonly roleKey: string;
  readonly createdMs: number;
  readonly ttlS: number;
  /** 0 when it does not expire. */
  readonly expiresMs: number;
  readonly numUses: number;
  /** 0 for any number. */
  readonly usesLeft: number;
  readonly cidrs: readonly string[];
  readonly tokenBoundCidrs: readonly string[];
  readonly meta: Readonly<Record<string, string>>;
}

/** What is asked of a new secret id. */
export interface SecretIdRequest {
  /** Chosen by the caller instead of a random one. */
  readonly secretId?: string | undefined;
  readonly cidrs?: readonly string[] | undefined;
  readonly tokenBoundCidrs?: readonly string[] | undefined;
  readonly numUses?: number | undefined;
  readonly ttlS?: number | undefined;
  readonly meta?: Readonly<Record<string, string>> | undefined;
}

/** By what a request names a secret id. */
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

/** @throws AccessError `invalid_request` */
export function newSecret(role: AppRole, asked: SecretIdRequest, now: number): SecretId {
  const numUses = capped(asked.numUses, role.secretIdNumUses, 'num_uses');
  const ttlS = capped(asked.ttlS, role.secretIdTtlS, 'ttl');
  const meta = asked.meta ?? {};
  if (Buffer.byteLength(JSON.stringify(meta)) > metaBytesMax)
    throw invalidRequest(`metadata comes to at most ${metaBytesMax} bytes`);
  return {
    accessor: randomUUID(),
    roleKey: role.key,
    createdMs: now,
    ttlS,
    expiresMs: ttlS === 0 ? 0 : now + ttlS * 1000,
    numUses,
    usesLeft: numUses,
    cidrs: checkCidrs(asked.cidrs ?? []),
    tokenBoundCidrs: checkCidrs(asked.tokenBoundCidrs ?? []),
    meta,
  };
}

/** What is asked, or else what the role says, and never more than that; 0 is without end. */
function capped(asked: number | undefined, most: number, field: string): number {
  if (asked === undefined) return most;
  if (asked < 0) throw invalidRequest(`'${field}' cannot be negative`);
  if (most > 0 && (asked === 0 || asked > most)) throw invalidRequest(`'${field}' cannot be more than the role says`);
  return asked;
}

/** One use less; the last one deletes it. */
export function useWrites(
  { value, condition }: { readonly value: SecretId; readonly condition: Condition },
  pointer: string,
): Write[] {
  if (value.usesLeft === 0) return [];
  if (value.usesLeft > 1) return [{ path: condition.path, value: encodeJson({ ...value, usesLeft: value.usesLeft - 1 }) }];
  return [condition.path, pointer].map((path) => ({ path, value: null }));
}
