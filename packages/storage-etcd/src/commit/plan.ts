import {
  type Command,
  type Condition,
  encodeTransaction,
  type FeatureLevel,
  type RestoredRecord,
  StoreError,
  type Transaction,
  type Write,
} from '@transitd/storage-fsm';
import { digestOf } from '../copy/chunks.ts';
import type { Copy, StagedTransaction } from '../copy/copy.ts';
import type { Keys } from '../copy/keys.ts';
import { encodeMarker, encodePointer } from '../copy/marker.ts';
import { encodeRecord } from '../copy/record-value.ts';
import { encodeSpace, type LiveSpace } from '../copy/space.ts';
import type { EtcdCompare, EtcdOperation, EtcdTxn } from '../etcd.ts';

/** Limits of one transaction, below etcd's defaults of 128 operations and 1.5 MiB: operations around the records count too. */
const operationsMax = 100;
export const bytesMax = 1024 * 1024;
/** Upper bound of what a row needs besides the prefix, its path and its value. */
const rowBytes = 80;

/** `direct`: one transaction of etcd. `staged`: chunks first, then one transaction that makes them effective. */
export type Plan =
  | { readonly kind: 'direct'; readonly body: EtcdTxn; readonly isConflict: boolean }
  | { readonly kind: 'staged'; readonly chunks: readonly EtcdOperation[]; readonly body: EtcdTxn };

/** A command that etcd's transactions can carry out. A restore has a way of its own. */
export type EtcdCommand = Exclude<Command, { readonly restore: unknown } | { readonly replication: unknown }>;

export interface PlanParts {
  readonly command: EtcdCommand;
  readonly copy: Copy;
  readonly keys: Keys;
  /** Random. */
  readonly attempt: string;
}

/** Returns whether the transaction is too large for one of etcd, so that it has to be staged. */
export function mustBeStaged({ conditions, writes }: Transaction, keys: Keys): boolean {
  if (Math.max(conditions.length, writes.length) > operationsMax) return true;
  const compared = conditions.reduce((bytes, { path }) => bytes + rowBytesOf({ path, value: null }, keys), 0);
  return writes.reduce((bytes, write) => bytes + rowBytesOf(write, keys), compared) > bytesMax;
}

const rowBytesOf = ({ path, value }: Write, keys: Keys): number =>
  rowBytes + keys.start.length + Buffer.byteLength(path) + (value?.length ?? 0);

function requireFitting(writes: readonly Write[]): void {
  for (const { value } of writes)
    if ((value?.length ?? 0) > bytesMax)
      throw new StoreError('too_large', `a record in etcd has at most ${bytesMax} bytes, this one ${value?.length}`);
}

/**
 * Plans a commit of the active node. Its copy must contain every commit that has touched these paths; for a staged one, every commit.
 * @throws StoreError `too_large` for a record that no key can hold
 */
export function planCommit(parts: PlanParts): Plan {
  const { command, copy, keys } = parts;
  if ('raise' in command) return raisePlan(parts, command.raise);
  requireFitting(command.writes);
  const isConflict = command.conditions.some(({ path, revision }) => (copy.get(path)?.revision ?? 0) !== revision);
  if (isConflict) return { kind: 'direct', isConflict, body: { compares: [], success: [marker(parts, 0, 0)], failure: [] } };
  const writes = command.writes.filter(({ path, value }) => value !== null || copy.get(path) !== undefined);
  return mustBeStaged(command, keys) ? stagedPlan(parts, writes) : directPlan(parts, command.conditions, writes);
}

/**
 * The conditions are compared again by etcd. A conflict writes the marker too, as a conflict is an entry of the log: so each commit is one
 * revision, and ends with an event in the watch.
 */
function directPlan(parts: PlanParts, conditions: readonly Condition[], writes: readonly Write[]): Plan {
  const { copy, keys } = parts;
  const compares = conditions.map(({ path }) => ({
    key: keys.record(copy.space, path),
    modRevision: copy.get(path)?.modRevision ?? 0,
  }));
  const puts = writes.filter(({ value }) => value !== null).length;
  const body = {
    compares,
    success: [...writes.map((write) => operation(keys, copy.space, write, 0)), marker(parts, puts, writes.length - puts)],
    failure: [marker(parts, 0, 0)],
  };
  return { kind: 'direct', isConflict: false, body };
}

/** The level never falls, and raising it to its present value changes nothing, as in a log. */
function raisePlan(parts: PlanParts, to: FeatureLevel): Plan {
  const { copy, keys } = parts;
  const { level, modRevision } = copy.level;
  const puts: EtcdOperation[] = to > level ? [{ kind: 'put', key: keys.level, value: Buffer.from(String(to)) }] : [];
  const body = {
    compares: [{ key: keys.level, modRevision }],
    success: [...puts, marker(parts, puts.length, 0)],
    failure: [marker(parts, 0, 0)],
  };
  return { kind: 'direct', isConflict: to < level, body };
}

/** That no other commit comes between makes all conditions hold. */
function stagedPlan(parts: PlanParts, writes: readonly Write[]): Plan {
  const { keys, attempt } = parts;
  const data = encodeTransaction({ conditions: [], writes });
  const chunks: EtcdOperation[] = [];
  for (let at = 0; at < data.length; at += bytesMax)
    chunks.push({ kind: 'put', key: keys.chunk(attempt, chunks.length), value: data.subarray(at, at + bytesMax) });
  const pointer = encodePointer({ attempt, chunks: chunks.length, digest: digestOf(data) });
  const success: EtcdOperation[] = [{ kind: 'put', key: keys.staged, value: pointer }, marker(parts, 1, 0)];
  return { kind: 'staged', chunks, body: { compares: nothingBetween(parts), success, failure: [] } };
}

/**
 * Returns the transactions that write a staged transaction to the keys of its records, and then end it. Each may be repeated while the
 * transaction {@link isStaged}: they write what is in effect already.
 */
export function unpackingOf(
  { revision, writes }: StagedTransaction,
  space: number,
  keys: Keys,
  attempt: () => string,
): EtcdOperation[][] {
  const written = batchesOf(writes, keys).map((batch) => [
    ...batch.map((write) => operation(keys, space, write, revision)),
    unpackMarker(keys, attempt(), batch.filter(({ value }) => value !== null).length),
  ]);
  const end: EtcdOperation[] = [
    { kind: 'delete', key: keys.staged },
    { kind: 'delete', key: keys.chunks, end: keys.chunksEnd },
    unpackMarker(keys, attempt(), 0),
  ];
  return [...written, end];
}

/** Holds while no node has taken this staged transaction to the keys of its records. After that, commits may have changed the records. */
export const isStaged = ({ revision }: StagedTransaction, keys: Keys): EtcdCompare => ({
  key: keys.staged,
  modRevision: revision,
});

/** Splits writes so that one transaction of etcd holds each part. */
function batchesOf(writes: readonly Write[], keys: Keys): Write[][] {
  const batches: Write[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const write of writes) {
    const more = rowBytesOf(write, keys);
    if (bytes + more > bytesMax || (batches.at(-1)?.length ?? 0) >= operationsMax) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)?.push(write);
    bytes += more;
  }
  return batches;
}

/** Returns the transactions that write the records of a restore into a space. @throws StoreError `too_large` */
export function stagingOf(records: readonly RestoredRecord[], space: number, keys: Keys): EtcdOperation[][] {
  requireFitting(records);
  return batchesOf(records, keys).map((batch) => batch.map((record) => operation(keys, space, record, 0)));
}

/** Returns a transaction that does `body` while the active key has this revision, and else returns the active key. */
export const whileActive = (keys: Keys, activeRevision: number, body: EtcdTxn): EtcdTxn => ({
  compares: [{ key: keys.active, modRevision: activeRevision }],
  success: [{ kind: 'txn', txn: body }],
  failure: [{ kind: 'range', key: keys.active }],
});

/** Returns the operation that raises the count of reserved values to this one. Send it while the count {@link isReserved}. */
export const reservation = (keys: Keys, count: number): EtcdOperation => ({
  kind: 'put',
  key: keys.reserved,
  value: Buffer.from(String(count)),
});

/** Holds while the count of reserved values is that of the copy, so that a count computed from it does not fall. */
export const isReserved = ({ copy, keys }: Pick<PlanParts, 'copy' | 'keys'>): EtcdCompare => ({
  key: keys.reserved,
  modRevision: copy.reservedRevision,
});

/** Returns the transaction that makes the records of a restore the state, if no other commit comes between. */
export function swapOf(parts: Omit<PlanParts, 'command'>, live: LiveSpace, valuesWritten: number): EtcdTxn {
  const { copy, keys } = parts;
  const success: EtcdOperation[] = [
    { kind: 'put', key: keys.space, value: encodeSpace(live) },
    reservation(keys, Math.max(copy.reserved, valuesWritten)),
    marker(parts, 2, 0),
  ];
  return { compares: [...nothingBetween(parts), isReserved(parts)], success, failure: [] };
}

/** Holds while the copy's newest commit is the newest one, and no staged transaction is in effect. */
const nothingBetween = ({ copy, keys }: Pick<PlanParts, 'copy' | 'keys'>): readonly EtcdCompare[] => [
  { key: keys.marker, modRevision: copy.marker.revision },
  { key: keys.staged, modRevision: 0 },
];

const operation = (keys: Keys, space: number, { path, value }: Write, revision: number): EtcdOperation =>
  value === null
    ? { kind: 'delete', key: keys.record(space, path) }
    : { kind: 'put', key: keys.record(space, path), value: encodeRecord({ revision, value }) };

const marker = ({ keys, attempt }: Pick<PlanParts, 'keys' | 'attempt'>, puts: number, deletes: number): EtcdOperation => ({
  kind: 'put',
  key: keys.marker,
  value: encodeMarker({ attempt, puts, deletes }),
});

const unpackMarker = (keys: Keys, attempt: string, puts: number): EtcdOperation => ({
  kind: 'put',
  key: keys.marker,
  value: encodeMarker({ attempt, puts }),
});
