import type { DriverStatus, ProposalOutcome, ReadOutcome, RefusalReason } from '@transitd/raft-core';
import { allowsFormat } from '../level/feature-levels.ts';
import { encodeCommand, transactionBytesMax } from '../store/codec.ts';
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
import type { Command } from '../store/transaction.ts';
import type { KeyValueMachine } from './key-value-machine.ts';

/** The part of consensus that a replica uses; raft-core's `Driver` over the same state machine implements it. */
export interface Consensus {
  propose(data: Uint8Array, done: (outcome: ProposalOutcome<CommitResult>) => void): void;
  /** Reports `readable` only after this node's state machine has applied every entry that the read requires. */
  readIndex(done: (outcome: ReadOutcome) => void): void;
  status(): DriverStatus;
}

export interface LocalReplicaParts {
  readonly consensus: Consensus;
  readonly machine: Pick<KeyValueMachine, 'applied' | 'featureLevel' | 'getSync' | 'paths' | 'range' | 'replication' | 'watch'>;
  /** True while the data disk is below its reserve. */
  readonly diskLow: () => boolean;
  /** Returns the names of voters whose disks are below their reserve, if the other voters are no quorum; otherwise none. */
  readonly lowDisks?: () => readonly string[];
  /**
   * Returns why no write may be accepted now, and none acknowledged; undefined if they may. It is asked both times, because another
   * cluster may have taken over between the two.
   */
  readonly fenced?: (command: Command) => string | undefined;
}

/** Bytes that a replication step needs in addition to its writes, for its fields as JSON. */
const followBytes = 1024;
const revisionBytes = 6;

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

  async commit(command: Command): Promise<CommitResult> {
    const data = encodeCommand(command);
    if (!allowsFormat(this.#parts.machine.featureLevel, data[0] ?? 0))
      throw new TypeError('the feature level does not allow this command yet: ask hasFeature before making it');
    this.#refuseTooLargeForSecondaries('writes' in command ? command.writes.length : 0, data.length);
    this.#refuseWithoutDiskSpace();
    const { fenced = () => undefined } = this.#parts;
    const refusal = fenced(command);
    if (refusal !== undefined) throw new StoreError('fenced', refusal);
    return new Promise((resolve, reject) => {
      this.#parts.consensus.propose(data, (outcome) => {
        if (outcome.kind === 'applied') {
          const late = fenced(command);
          if (late === undefined) resolve(outcome.result);
          else reject(new StoreError('outcome_unknown', `the write may be lost if a secondary is promoted: ${late}`));
        } else if (outcome.kind === 'refused') reject(refused(outcome.reason));
        else reject(new StoreError('outcome_unknown', `entry ${outcome.index} may still commit`));
      });
    });
  }

  /** Followers without disk space accept no entries: a write that needs them would wait until their disks have room again. */
  #refuseWithoutDiskSpace(): void {
    if (this.#parts.diskLow())
      throw new StoreError('disk_low', 'the data disk is below its reserve: free disk space on this node');
    const names = this.#parts.lowDisks?.() ?? [];
    if (names.length === 0) return;
    const nodes = `${names.length === 1 ? 'node' : 'nodes'} ${names.join(', ')}`;
    throw new StoreError(
      'disk_low',
      `no quorum has disk space, the data disk is below its reserve on ${nodes}: free disk space there`,
    );
  }

  /** A secondary stores the same writes in one entry of its own log, where each write takes some more bytes. */
  #refuseTooLargeForSecondaries(writes: number, bytes: number): void {
    if (this.#parts.machine.replication?.role !== 'primary') return;
    const bytesThere = bytes + followBytes + revisionBytes * writes;
    if (bytesThere > transactionBytesMax)
      throw new StoreError(
        'too_large',
        `a secondary would need ${bytesThere} bytes for the transaction; at most ${transactionBytesMax} are allowed`,
      );
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
  busy: ['busy', 'too many writes are waiting for a quorum: try again later'],
  stalled: ['busy', 'the state store of this node is not finishing its writes'],
  tooLarge: ['too_large', 'the transaction is longer than a log entry may be'],
  stopped: ['stopped', 'this node is stopping'],
  faulty: ['stopped', 'this node has failed'],
};
