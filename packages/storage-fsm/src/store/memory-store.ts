import type { LogIndex } from '@transitd/raft-core';
import { decodeTransaction, encodeCommand } from './codec.ts';
import { comparePaths } from './path.ts';
import { mergePathPages } from './path-page.ts';
import { checkQuery, inRange, pageRecordsMax, type Row, takePage } from './range.ts';
import type { Change, CommitResult, RangeQuery, Replica, StoredRecord } from './store.ts';
import { applyTransaction, type Transaction } from './transaction.ts';
import { Watchers } from './watchers.ts';
import type { Write } from './write.ts';

export interface MemoryStoreOptions {
  /** Reports every commit to watchers as a change of `everything`, as after a snapshot, so that caches must drop all they hold. */
  readonly reportsEverything?: boolean;
}

/**
 * Returns a store in memory, for the tests of other packages. Its node is the only voter and always the leader. It follows the rules and
 * limits of the replicated store, except that it refuses all commands but transactions. Every commit is one log entry; nothing is stored
 * on disk.
 */
export function memoryStore({ reportsEverything = false }: MemoryStoreOptions = {}): Replica {
  const records = new Map<string, StoredRecord>();
  const watchers = new Watchers();
  let index: LogIndex = 0;
  let valuesWritten = 0;

  function apply(transaction: Transaction): CommitResult {
    index += 1;
    valuesWritten += transaction.writes.filter(({ value }) => value !== null).length;
    const effect = applyTransaction(transaction, (path) => records.get(path)?.revision ?? 0);
    if (effect === 'conflict') return { outcome: 'conflict', index, revision: index };
    const changes = effect.writes.filter(({ path, value }) => value !== null || records.has(path)).map(write);
    watchers.notify(reportsEverything ? 'everything' : changes);
    return { outcome: 'committed', index, revision: index };
  }

  function write({ path, value }: Write): Change {
    if (value === null) records.delete(path);
    else records.set(path, { value, revision: index });
    return { path, revision: index, deleted: value === null };
  }

  return {
    async get(path) {
      const record = records.get(path);
      return record && { value: Buffer.from(record.value), revision: record.revision };
    },
    async range(query) {
      checkQuery(query);
      return takePage(query, [...rows(query, records)]);
    },
    async paths(query) {
      checkQuery(query);
      const limit = Math.min(query.limit ?? pageRecordsMax, pageRecordsMax);
      return mergePathPages([{ paths: sortedPaths(query, records) }], limit);
    },
    async commit(command) {
      return apply(decodeTransaction(encodeCommand(command)));
    },
    watch: (prefix, listener) => watchers.add(prefix, listener),
    async fresh() {},
    status: () => ({
      clusterId: 'memory',
      nodeId: 1,
      role: 'leader',
      ready: true,
      term: 1,
      leader: 1,
      lastIndex: index,
      commitIndex: index,
      appliedIndex: index,
      flushedIndex: index,
      valuesWritten,
      diskLow: false,
    }),
  };
}

const sortedPaths = (query: RangeQuery, records: ReadonlyMap<string, StoredRecord>): string[] =>
  [...records.keys()].filter((path) => inRange(query, path)).sort(comparePaths);

function* rows(query: RangeQuery, records: ReadonlyMap<string, StoredRecord>): Generator<Row> {
  for (const path of sortedPaths(query, records)) {
    const record = records.get(path);
    if (record !== undefined) yield { path, value: Buffer.from(record.value), revision: record.revision };
  }
}
