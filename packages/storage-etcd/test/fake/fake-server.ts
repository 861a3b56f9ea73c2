// etcd's store in memory: revisions, transactions, history, leases, compaction and restores. Without time and without faults.

import type { RevisionEvents } from '../../src/copy/watch-revisions.ts';
import type { EtcdEvent, EtcdOperation, EtcdOperationAnswer, EtcdRow, EtcdTxn, EtcdTxnAnswer } from '../../src/etcd.ts';
import { EtcdError } from '../../src/etcd.ts';

const operationsMax = 128;
const requestBytesMax = 1.5 * 1024 * 1024;

interface Stored extends EtcdRow {
  readonly lease: bigint;
}

interface Backup {
  readonly revision: number;
  readonly rows: ReadonlyMap<string, Stored>;
  readonly history: readonly RevisionEvents[];
}

export class FakeServer {
  revision = 1;
  compacted = 0;
  readonly leases = new Set<bigint>();
  #rows = new Map<string, Stored>();
  #history: RevisionEvents[] = [];
  #lastLease = 0n;
  /** Called after every change; watches wait for it. */
  readonly listeners = new Set<() => void>();

  /** Returns the rows in [key, end) as of `revision`. @throws EtcdError `compacted` for a revision that the history does not have */
  rows(key: string, end: string | undefined, revision = this.revision): EtcdRow[] {
    if (revision > this.revision) throw new EtcdError('compacted', 'required revision is a future revision');
    if (revision < this.compacted) throw new EtcdError('compacted', 'required revision has been compacted');
    const present = new Map<string, EtcdRow>(this.#rows);
    for (const past of this.#history.toReversed().filter((one) => one.revision > revision))
      for (const { row } of past.events) {
        const before = this.#rowBefore(row.key, past.revision);
        if (before === undefined) present.delete(row.key);
        else present.set(row.key, before);
      }
    const within = [...present.values()].filter((row) =>
      end === undefined ? row.key === key : compare(row.key, key) >= 0 && compare(row.key, end) < 0,
    );
    return within.sort((a, b) => compare(a.key, b.key));
  }

  txn(txn: EtcdTxn): EtcdTxnAnswer {
    check(txn, operationsMax);
    if (bytesOf(txn) > requestBytesMax) throw new EtcdError('refused', 'etcdserver: request is too large');
    const events: EtcdEvent[] = [];
    const next = this.revision + 1;
    const answer = this.#execute(txn, next, events);
    this.#record(events);
    return { ...answer, revision: this.revision };
  }

  /** Returns the revisions from `start` on, with the events in [key, end). */
  events(start: number, key: string, end: string): RevisionEvents[] {
    return this.#history
      .filter(({ revision }) => revision >= start)
      .map(({ revision, events }) => ({
        revision,
        events: events.filter(({ row }) => compare(row.key, key) >= 0 && compare(row.key, end) < 0),
      }))
      .filter(({ events }) => events.length > 0);
  }

  grantLease(): bigint {
    this.#lastLease += 1n;
    this.leases.add(this.#lastLease);
    return this.#lastLease;
  }

  endLease(lease: bigint): void {
    if (!this.leases.delete(lease)) return;
    const keys = [...this.#rows.values()].filter((row) => row.lease === lease).map(({ key }) => key);
    if (keys.length > 0) this.txn({ compares: [], success: keys.map((key) => ({ kind: 'delete', key })), failure: [] });
  }

  /** Forgets the history up to this revision, which stays readable. */
  compact(revision = this.revision): void {
    this.compacted = Math.max(this.compacted, revision);
  }

  backup(): Backup {
    return { revision: this.revision, rows: new Map(this.#rows), history: [...this.#history] };
  }

  /** As after a restore: later changes are gone, and their revisions are used again. */
  restore({ revision, rows, history }: Backup): void {
    this.revision = revision;
    this.#rows = new Map(rows);
    this.#history = [...history];
    this.#changed();
  }

  #rowBefore(key: string, revision: number): EtcdRow | undefined {
    const past = this.#history.filter((one) => one.revision < revision).flatMap(({ events }) => events);
    const last = past.findLast(({ row }) => row.key === key);
    return last === undefined || last.deleted ? undefined : last.row;
  }

  #execute({ compares, success, failure }: EtcdTxn, next: number, events: EtcdEvent[]): Omit<EtcdTxnAnswer, 'revision'> {
    const succeeded = compares.every(({ key, modRevision }) => (this.#rows.get(key)?.modRevision ?? 0) === modRevision);
    const answers = (succeeded ? success : failure).map((operation) => this.#operate(operation, next, events));
    return { succeeded, answers };
  }

  #operate(operation: EtcdOperation, next: number, events: EtcdEvent[]): EtcdOperationAnswer {
    if (operation.kind === 'range') return { rows: [...this.#rows.values()].filter(({ key }) => key === operation.key) };
    if (operation.kind === 'txn') return { txn: this.#execute(operation.txn, next, events) };
    if (operation.kind === 'put') {
      const { key, lease = 0n } = operation;
      if (lease !== 0n && !this.leases.has(lease)) throw new EtcdError('refused', 'etcdserver: requested lease not found');
      const old = this.#rows.get(key);
      const row: Stored = {
        key,
        value: Buffer.from(operation.value),
        lease,
        createRevision: old?.createRevision ?? next,
        modRevision: next,
        version: (old?.version ?? 0) + 1,
      };
      this.#rows.set(key, row);
      events.push({ deleted: false, row });
      return {};
    }
    for (const { key } of this.rows(operation.key, operation.end, this.revision)) {
      if (!this.#rows.delete(key)) continue;
      const row = { key, value: Buffer.alloc(0), createRevision: 0, modRevision: next, version: 0 };
      events.push({ deleted: true, row });
    }
    return {};
  }

  #record(events: EtcdEvent[]): void {
    if (events.length === 0) return;
    this.revision += 1;
    this.#history.push({ revision: this.revision, events });
    this.#changed();
  }

  #changed(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

const compare = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Refuses what etcd refuses: too many operations, and a key that one branch writes twice. */
function check({ compares, success, failure }: EtcdTxn, left: number): void {
  const operations = Math.max(compares.length, success.length, failure.length);
  if (operations > left) throw new EtcdError('refused', 'etcdserver: too many operations in txn request');
  for (const branch of [success, failure]) {
    const keys = branch.flatMap((operation) => (operation.kind === 'put' ? [operation.key] : []));
    if (new Set(keys).size < keys.length) throw new EtcdError('refused', 'etcdserver: duplicate key given in txn request');
    for (const operation of branch) if (operation.kind === 'txn') check(operation.txn, left - operations);
  }
}

function bytesOf({ compares, success, failure }: EtcdTxn): number {
  const operations = [...success, ...failure].map((operation) => {
    if (operation.kind === 'txn') return bytesOf(operation.txn);
    return operation.key.length + (operation.kind === 'put' ? operation.value.length : 0);
  });
  return [...compares.map(({ key }) => key.length), ...operations].reduce((sum, bytes) => sum + bytes, 0);
}
