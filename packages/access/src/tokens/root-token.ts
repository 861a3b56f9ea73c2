import { randomBytes } from 'node:crypto';
import type { Write } from '@transitd/storage-fsm';
import { AccessError } from '../values/errors.ts';
import { encodeTokenKey, tokenKeyBytes } from './stored-key.ts';
import { accessorIdOf, isTokenShaped, newAccessor, newToken, tokenIdOf } from './token.ts';
import { tokenKeyPath } from './token-paths.ts';
import type { TokenRecord } from './token-record.ts';
import { tokenWrites } from './token-transactions.ts';

interface InitialAccess {
  /** Returned to the operator once; only its keyed hash is stored. */
  readonly rootToken: string;
  /** Plaintext records for the first transaction. */
  readonly writes: readonly Write[];
}

/**
 * Makes the first records of a cluster: the key that hashes tokens, and a root token.
 * @param now - milliseconds since the epoch
 * @param rootToken - a fixed token for development; random when absent
 * @throws AccessError `invalid_token`
 */
export function initialAccess({
  now,
  rootToken = newToken(),
}: {
  readonly now: number;
  readonly rootToken?: string;
}): InitialAccess {
  if (!isTokenShaped(rootToken))
    throw new AccessError('invalid_token', 'a root token must have 1 to 1024 characters and no control characters');
  const key = randomBytes(tokenKeyBytes);
  const record = rootRecord(now);
  const writes = [
    { path: tokenKeyPath, value: encodeTokenKey(key) },
    ...tokenWrites({ id: tokenIdOf(key, rootToken), record, accessorId: accessorIdOf(key, record.accessor) }),
  ];
  key.fill(0);
  return { rootToken, writes };
}

/** Returns the record of a root token that has no parent and does not expire. @param now - milliseconds since the epoch */
export const rootRecord = (now: number): TokenRecord => ({
  type: 'service',
  accessor: newAccessor(),
  policies: ['root'],
  displayName: 'root',
  meta: {},
  path: 'auth/token/root',
  createdMs: now,
  ttlS: 0,
  expiresMs: 0,
  explicitMaxTtlS: 0,
  periodS: 0,
  renewable: false,
  parent: '',
  parentAccessorId: '',
  generation: 0,
  usesLeft: 0,
  renewedMs: 0,
  maxTtlS: 0,
  role: '',
  boundCidrs: [],
  boundCertificate: '',
  mount: '',
  source: '',
  groups: [],
});
