import {
  type Command,
  type RangePage,
  type RangeQuery,
  requireOneKind,
  type StoredRecord,
  type Transaction,
} from '@transitd/storage-fsm';

/** A request of a gateway to the main thread. `id` is unique among the open requests of the gateway. */
export type ReplicaRequest = { readonly id: number } & ReplicaCall;

export type ReplicaCall =
  | { readonly kind: 'get'; readonly path: string }
  | { readonly kind: 'range'; readonly query: RangeQuery }
  | { readonly kind: 'paths'; readonly query: RangeQuery }
  | { readonly kind: 'commit'; readonly transaction: Transaction }
  | { readonly kind: 'fresh' };

/**
 * Returns bytes with a buffer of their own. A message copies whole buffers, so a few bytes of a pool would send the pool, with whatever
 * other values it holds.
 */
const alone = (bytes: Uint8Array): Uint8Array => (bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes));

export const recordToSend = (record: StoredRecord | undefined): StoredRecord | undefined =>
  record && { ...record, value: alone(record.value) };

export const pageToSend = ({ records, ...page }: RangePage): RangePage => ({
  ...page,
  records: records.map((record) => ({ ...record, value: alone(record.value) })),
});

/** @throws TypeError for other commands, which the main thread commits itself, and for a mixture of kinds */
export function transactionToSend(command: Command): Transaction {
  requireOneKind(command);
  if (!('writes' in command)) throw new TypeError('a gateway commits only changes of records');
  const { conditions, writes } = command;
  return { conditions, writes: writes.map(({ path, value }) => ({ path, value: value && alone(value) })) };
}
