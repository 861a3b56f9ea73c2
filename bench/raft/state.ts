import { type Driver, invariant, type LogIndex, type SnapshotTransfer, type StateMachine } from '@transitd/raft-core';
import { type CommitResult, KeyValueMachine, LocalReplica, NodeSnapshots, type SegmentLog } from '@transitd/storage-fsm';
import type { Orders } from './orders.ts';
import type { SnapshotTcp } from './snapshot-tcp.ts';

/** The state machine of a member. */
export interface State<Result> {
  readonly machine: StateMachine<Result>;
  readonly snapshots: SnapshotTransfer;
  /** Commits any write; calls `done` once it is committed. */
  writeOne(driver: Driver<Result>, done: () => void): void;
  fill(driver: Driver<Result>, ask: Orders['fill']['ask']): Promise<null>;
  /** Resolves with the next snapshot that is installed on this member. */
  installed(): Promise<Orders['installed']['answer']>;
}

const diskLow = (): boolean => false;
const notHere = (): never => {
  throw new Error('this member keeps no records');
};

/** Stores nothing, so that only the log is measured. It starts at the base of the log, as if the compacted entries were stored. */
export function nothing(log: SegmentLog): State<void> {
  let applied = log.start.base.index;
  return {
    machine: {
      flushedAtOpen: applied,
      apply: ({ index }) => {
        applied = index;
      },
      publish: () => undefined,
      flush: (done) => void setImmediate(done, undefined, applied),
    },
    snapshots: {
      serve: () => undefined,
      fetch: notHere, // without records, no follower lags so far that it needs a snapshot
      install: notHere,
      discard: () => undefined,
    },
    writeOne: (driver, done) => driver.propose(new Uint8Array(1), ({ kind }) => kind === 'applied' && done()),
    fill: notHere,
    installed: notHere,
  };
}

/** Records that are stored and sent as a server does it. */
export async function records(log: SegmentLog, tcp: SnapshotTcp, fatal: (error: Error) => void): Promise<State<CommitResult>> {
  const { base } = log.start;
  const machine = await KeyValueMachine.open({ directory: log.stateDirectory, base: base.index, onFailure: fatal });
  log.verifyAgainstState(machine.flushedAtOpen);
  const snapshots = new NodeSnapshots({ log, machine, diskLow, link: tcp, onFetchFailed: fatal });
  tcp.serve((peer, index) => snapshots.stream(peer, index));
  const installed = Promise.withResolvers<Orders['installed']['answer']>();
  const timed = new Timed(snapshots, (index, ms) => installed.resolve({ index, ms, bytes: tcp.received }));
  return {
    machine,
    snapshots: timed,
    writeOne: (driver, done) => {
      const replica = new LocalReplica({ machine, consensus: driver, diskLow });
      const writes = [{ path: 'bench/lead', value: Buffer.of(1) }];
      replica.commit({ conditions: [], writes }).then(done, () => undefined); // the member has lost its leadership
    },
    installed: () => installed.promise,
    fill: async (driver, { count, bytes }) => {
      const replica = new LocalReplica({ machine, consensus: driver, diskLow });
      const perTransaction = Math.ceil(2 ** 18 / bytes);
      for (let first = 0; first < count; first += perTransaction) {
        const some = Array.from({ length: Math.min(perTransaction, count - first) }, (_, i) => first + i);
        const writes = some.map((i) => ({ path: `bench/${bytes}/${String(i).padStart(8, '0')}`, value: Buffer.alloc(bytes, i) }));
        await replica.commit({ conditions: [], writes });
      }
      return null;
    },
  };
}

/** Measures the transfer of a snapshot, from the request to the installed snapshot. */
class Timed implements SnapshotTransfer {
  readonly #inner: SnapshotTransfer;
  readonly #installed: (index: LogIndex, ms: number) => void;
  #startedMs: number | undefined;

  constructor(inner: SnapshotTransfer, installed: (index: LogIndex, ms: number) => void) {
    this.#inner = inner;
    this.#installed = installed;
  }

  serve(...args: Parameters<SnapshotTransfer['serve']>): void {
    this.#inner.serve(...args);
  }

  fetch(...args: Parameters<SnapshotTransfer['fetch']>): () => void {
    this.#startedMs = performance.now();
    return this.#inner.fetch(...args);
  }

  install(...[meta, done]: Parameters<SnapshotTransfer['install']>): void {
    this.#inner.install(meta, (error) => {
      invariant(this.#startedMs !== undefined, 'what is installed was fetched', { index: meta.index });
      if (error === undefined) this.#installed(meta.index, performance.now() - this.#startedMs);
      done(error);
    });
  }

  discard(): void {
    this.#inner.discard();
  }
}
