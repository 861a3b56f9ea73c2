import type { Condition, Transaction, Write } from '@transitd/storage-fsm';
import { wrappingPolicy } from '../policy/policies.ts';
import { accessorPath, childPath, duePath, tokenPath, wrappedPath } from './token-paths.ts';
import { encodeAccessorRecord, encodeTokenRecord, indexEntry, type TokenRecord } from './token-record.ts';

/** A token as it is stored. */
export interface StoredToken {
  /** Keyed hash of the token. */
  readonly id: string;
  readonly record: TokenRecord;
  /** Index of the log entry that wrote it; 0 before it is written. */
  readonly revision: number;
  /** Keyed hash of the accessor. */
  readonly accessorId: string;
}

/** A token with its ancestors. */
export interface Lineage extends StoredToken {
  /** Undefined for an orphan. */
  readonly parent: Lineage | undefined;
  /** Condition that holds while the auth method that made the token is unchanged; undefined for a token that no login made. */
  readonly mount: Condition | undefined;
}

type NewToken = Omit<StoredToken, 'revision'>;

/** Returns the writes of a new token. */
export function tokenWrites({ id, record, accessorId }: NewToken): Write[] {
  return [
    { path: tokenPath(id), value: encodeTokenRecord(record) },
    { path: accessorPath(accessorId), value: encodeAccessorRecord({ accessor: record.accessor, token: id }) },
    ...indexPaths(id, record).map((path) => ({ path, value: indexEntry })),
  ];
}

/**
 * Creates a token if its id is unused and neither its creator nor an ancestor of the creator has changed, so that a revoked token
 * cannot create tokens.
 */
export const createTransaction = (token: NewToken, creator: Lineage): Transaction => ({
  conditions: [{ path: tokenPath(token.id), revision: 0 }, ...unchangedLineage(creator)],
  writes: tokenWrites(token),
});

/** Creates the token of a login if its id is unused and the conditions of the login hold. */
export const issueTransaction = (token: NewToken, { conditions, writes }: Transaction): Transaction => ({
  conditions: [{ path: tokenPath(token.id), revision: 0 }, ...conditions],
  writes: [...tokenWrites(token), ...writes],
});

/** Counts a use of a token if it and its ancestors are unchanged, so that a revoked token cannot be used. */
export const spendTransaction = (token: Lineage, record: TokenRecord): Transaction => ({
  conditions: unchangedLineage(token),
  writes: rewriteTransaction(token, record).writes,
});

/** Rewrites a token's record and its index entries. */
export function rewriteTransaction(token: Omit<StoredToken, 'accessorId'>, record: TokenRecord): Transaction {
  const [before, after] = [indexPaths(token.id, token.record), indexPaths(token.id, record)];
  return {
    conditions: [unchanged(token)],
    writes: [
      { path: tokenPath(token.id), value: encodeTokenRecord(record) },
      ...before.filter((path) => !after.includes(path)).map((path) => ({ path, value: null })),
      ...after.filter((path) => !before.includes(path)).map((path) => ({ path, value: indexEntry })),
    ],
  };
}

/** Deletes a token. Its descendants become invalid, since an ancestor no longer exists. */
export const deleteTransaction = (token: StoredToken): Transaction => ({
  conditions: [unchanged(token)],
  writes: [
    tokenPath(token.id),
    accessorPath(token.accessorId),
    ...(isWrapping(token.record) ? [wrappedPath(token.id)] : []),
    ...indexPaths(token.id, token.record),
  ].map((path) => ({ path, value: null })),
});

/** Returns whether the token is a wrapping token: no other has this policy. */
export const isWrapping = ({ policies }: TokenRecord): boolean => policies.length === 1 && policies[0] === wrappingPolicy;

/** Combines transactions into one that commits all or nothing. */
export const combined = (transactions: readonly Transaction[]): Transaction => ({
  conditions: transactions.flatMap(({ conditions }) => conditions),
  writes: transactions.flatMap(({ writes }) => writes),
});

const unchanged = ({ id, revision }: Pick<StoredToken, 'id' | 'revision'>): Condition => ({ path: tokenPath(id), revision });

function unchangedLineage(token: Lineage): Condition[] {
  const conditions: Condition[] = [];
  for (let each: Lineage | undefined = token; each !== undefined; each = each.parent)
    conditions.push(unchanged(each), ...(each.mount === undefined ? [] : [each.mount]));
  return conditions;
}

/** Returns the paths of a token's index entries: under its parent or auth method, and by expiry. */
const indexPaths = (id: string, { parentAccessorId, mount, expiresMs }: TokenRecord): string[] => [
  ...(parentAccessorId === '' ? [] : [childPath(parentAccessorId, id)]),
  ...(mount === '' ? [] : [childPath(mount, id)]),
  ...(expiresMs === 0 ? [] : [duePath(expiresMs, id)]),
];
