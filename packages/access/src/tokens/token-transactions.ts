import type { Condition, Transaction, Write } from '@transitd/storage-fsm';
import { wrappingPolicy } from '../policy/policies.ts';
import { accessorPath, childPath, duePath, tokenPath, wrappedPath } from './token-paths.ts';
import { encodeAccessorRecord, encodeTokenRecord, indexEntry, type TokenRecord } from './token-record.ts';

/** A token as the store has it. */
export interface StoredToken {
  /** Keyed hash of the token. */
  readonly id: string;
  readonly record: TokenRecord;
  /** Index of the entry that wrote it; 0 before it is written. */
  readonly revision: number;
  /** Keyed hash of the accessor. */
  readonly accessorId: string;
}

/** A token and those above it. */
export interface Lineage extends StoredToken {
  /** Undefined for an orphan. */
  readonly parent: Lineage | undefined;
  /** Holds while the login method is there that made it; undefined for a token that no login made. */
  readonly mount: Condition | undefined;
}

type NewToken = Omit<StoredToken, 'revision'>;

/** The records of a new token. */
export function tokenWrites({ id, record, accessorId }: NewToken): Write[] {
  return [
    { path: tokenPath(id), value: encodeTokenRecord(record) },
    { path: accessorPath(accessorId), value: encodeAccessorRecord({ accessor: record.accessor, token: id }) },
    ...indexPaths(id, record).map((path) => ({ path, value: indexEntry })),
  ];
}

/** Makes a token, provided that its id is free and its creator, with all above it, is still as it was read: rights that are gone make none. */
export const createTransaction = (token: NewToken, creator: Lineage): Transaction => ({
  conditions: [{ path: tokenPath(token.id), revision: 0 }, ...unchangedLineage(creator)],
  writes: tokenWrites(token),
});

/** Makes a token by a login, provided that its id is free and all that the login rests on is still so. */
export const issueTransaction = (token: NewToken, { conditions, writes }: Transaction): Transaction => ({
  conditions: [{ path: tokenPath(token.id), revision: 0 }, ...conditions],
  writes: [...tokenWrites(token), ...writes],
});

/** Counts a use of a token, provided that neither it nor anything above it has changed: one that is revoked is not used. */
export const spendTransaction = (token: Lineage, record: TokenRecord): Transaction => ({
  conditions: unchangedLineage(token),
  writes: rewriteTransaction(token, record).writes,
});

/** Writes a token's record anew: renewed, or without its parent. */
export function rewriteTransaction(token: StoredToken, record: TokenRecord): Transaction {
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

/** Deletes a token. Its children are refused from then on, since what is above them is gone. */
export const deleteTransaction = (token: StoredToken): Transaction => ({
  conditions: [unchanged(token)],
  writes: [
    tokenPath(token.id),
    accessorPath(token.accessorId),
    ...(isWrapping(token.record) ? [wrappedPath(token.id)] : []),
    ...indexPaths(token.id, token.record),
  ].map((path) => ({ path, value: null })),
});

/** Whether the token is one that fetches a wrapped answer: no other has this policy. */
export const isWrapping = ({ policies }: TokenRecord): boolean => policies.length === 1 && policies[0] === wrappingPolicy;

/** Several as one: all or none. */
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

/** Where a token is found by its parent, or the login method in a parent's place, and by its time. */
const indexPaths = (id: string, { parentAccessorId, mount, expiresMs }: TokenRecord): string[] => [
  ...(parentAccessorId === '' ? [] : [childPath(parentAccessorId, id)]),
  ...(mount === '' ? [] : [childPath(mount, id)]),
  ...(expiresMs === 0 ? [] : [duePath(expiresMs, id)]),
];
