import type { DriverStatus, ProposalOutcome, ReadOutcome, RefusalReason } from '@transitd/raft-core';
import { encodeTransaction } from '../store/codec.ts';
import {
  type Changes,
  type CommitResult,
  type PathPage,
  type RangePage,
  type RangeQuery,
  type Replica,
  type ReplicaStatus,
  type StoredRecord,
  StoreError,
  type StoreErrorCode,
} from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { KeyValueMachine } from './state-machine.ts';

/** The part of consensus that a replica uses; raft-core's `Driver` over the same state machine implements it. */
export interface Consensus {
  propose(data: Uint8Array, done: (outcome: ProposalOutcome<CommitResult>) => void): void;
  /** Reports `readable` only after this node's state machine has applied every entry that the read requires. */
  readIndex(done: (outcome: ReadOutcome) => void): void;
  status(): DriverStatus;
}

export interface LocalReplicaParts {
  readonly consensus: Consensus;
  readonly machine: Pick<KeyValueMachine, 'applied' | 'getSync' | 'paths' | 'range' | 'watch'>;
  /** True while the data disk is below its reserve. */
  readonly diskLow: () => boolean;
}

/** The replica in the process that runs consensus: it reads from the state machine and commits through the log. */
export class LocalReplica implements Replica {
  readonly #parts: LocalReplicaParts;

  constructor(parts: LocalReplicaParts) {
    this.#parts = parts;
  }

  async get(path: string): Promise<StoredRecord | undefined> {
    return this.#parts.machine.getSync(path);
  }

  async range(query: RangeQuery): Promise<RangePage> {
    return this.#parts.machine.range(query);
  }

  async paths(query: RangeQuery): Promise<PathPage> {
    return this.#parts.machine.paths(query);
  }

  async commit(transaction: Transaction): Promise<CommitResult> {
    const data = encodeTransaction(transaction);
    if (this.#parts.diskLow()) throw new StoreError('disk_low', 'the data disk is below its reserve');
    return new Promise((resolve, reject) => {
      this.#parts.consensus.propose(data, (outcome) => {
        if (outcome.kind === 'applied') resolve(outcome.result);
        else if (outcome.kind === 'refused') reject(refused(outcome.reason));
        else reject(new StoreError('outcome_unknown', `entry ${outcome.index} may still commit`));
      });
    });
  }

  async fresh(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#parts.consensus.readIndex((outcome) => {
        if (outcome.kind === 'readable') resolve();
        else reject(refused(outcome.reason));
      });
    });
  }

  watch(prefix: string, listener: (changes: Changes) => void): () => void {
    return this.#parts.machine.watch(prefix, listener);
  }

  status(): ReplicaStatus {
    const { consensus, machine, diskLow } = this.#parts;
    return { ...consensus.status(), valuesWritten: machine.applied.valuesWritten, diskLow: diskLow() };
  }
}

const refused = (reason: RefusalReason): StoreError => new StoreError(...refusals[reason]);

const refusals: Readonly<Record<RefusalReason, readonly [code: StoreErrorCode, message: string]>> = {
  notLeader: ['not_leader', 'this node is not the leader'],
  lostLeadership: ['not_leader', 'this node lost leadership, and another entry replaced this write'],
  transferring: ['not_leader', 'this node is transferring leadership'],
  sealed: ['not_leader', 'this node is sealed and accepts no writes'],
  removed: ['not_leader', 'this node was removed from the cluster'],
  busy: ['busy', 'too many proposals are in flight'],
  stalled: ['busy', 'the state store of this node is not finishing its writes'],
  tooLarge: ['too_large', 'the transaction is longer than a log entry may be'],
  stopped: ['stopped', 'this node is stopping'],
  faulty: ['stopped', 'this node has failed'],
};
