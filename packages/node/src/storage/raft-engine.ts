import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { MemberEvents, MembershipPorts, Storage } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import { type NodeObserver, type Span, StartError } from '@transitd/process';
import {
  Driver,
  type DriverLimits,
  type DriverOptions,
  type DriverStatus,
  driverLimits,
  type Grant,
  type LogIndex,
  type ProposalObserver,
  type Random,
  runsWithoutPeers,
} from '@transitd/raft-core';
import { type Fence, refusalWithoutPort } from '@transitd/replication';
import {
  type CommitResult,
  type Consensus,
  type Disk,
  DiskReserve,
  type FeatureLevel,
  KeyValueMachine,
  LocalReplica,
  NodeSnapshots,
  type Replica,
  type ReplicationState,
  SegmentLog,
  type SnapshotLink,
  StoreError,
} from '@transitd/storage-fsm';
import { LeaseClock } from '../clock/lease-clock.ts';

export interface StorageOptions extends Pick<Config, 'raft'> {
  /** Called once when the disk failed or an invariant was violated: the process must end. */
  readonly onFatal: (error: Error) => void;
  /** Gets changes of status and configuration, and clock jumps. */
  readonly events: MemberEvents;
  /** @see DriverOptions.onLease */
  readonly onLease?: (endMs: number | undefined) => void;
  readonly observer: NodeObserver;
  /** Absent on a node that no other node can join. */
  readonly membership?: MembershipPorts;
}

/** Ticks in one heartbeat interval: a heartbeat is late by one tick at most. */
const ticksPerHeartbeat = 2.5;

/**
 * Returns the driver's limits. The election jitter is half of the paper's: with three to five nodes two candidates at once are rare enough.
 */
export const raftLimits = (raft: Config['raft']): Partial<DriverLimits> => ({
  tickMs: Math.min(driverLimits.tickMs, raft.heartbeat / ticksPerHeartbeat),
  heartbeatMs: raft.heartbeat,
  electionMs: raft.election_timeout,
  electionJitterMs: raft.election_timeout / 2,
  leaseMs: raft.lease,
  compactAfterEntries: raft.snapshot_threshold,
  keepTrailingEntries: raft.trailing_logs,
});

/** The parts below the driver, which are opened before it. */
interface Opened {
  readonly log: SegmentLog;
  readonly machine: KeyValueMachine;
  readonly reserve: DiskReserve;
  readonly disk: Disk;
}

/** The engine of a node whose consensus is Raft and whose records are in its data directory. */
export class RaftEngine implements Storage {
  readonly kind = 'raft';
  readonly replica: Replica;
  readonly driver: Driver<CommitResult>;
  readonly machine: KeyValueMachine;
  readonly snapshots: NodeSnapshots;
  readonly electedWithinMs: number;
  readonly #reserve: DiskReserve;
  readonly #clock: LeaseClock;
  readonly #leads = Promise.withResolvers<void>();
  #fence: Fence;
  #stopped: Promise<void> | undefined;

  private constructor({ log, machine, reserve, disk }: Opened, options: StorageOptions) {
    const { raft, membership, events, observer } = options;
    const diskLow = (): boolean => reserve.diskLow();
    this.machine = machine;
    this.electedWithinMs = 2 * raft.election_timeout;
    this.#reserve = reserve;
    this.#fence = { refusal: (command) => refusalWithoutPort(machine.replication, command) };
    this.#clock = new LeaseClock({ leaseMs: raft.lease, onJump: (ms) => events.emit('clockJump', { ms }) });
    this.#leads.promise.catch(() => undefined); // a rejection reaches the callers that await this promise; there may be none
    this.snapshots = new NodeSnapshots({
      log,
      machine,
      disk,
      diskLow,
      link: membership?.link ?? noLink,
      onFetchFailed: (error) => membership?.onFetchFailed(error),
    });
    const peers = membership?.peers({ ...log.start, snapshots: this.snapshots, random: systemRandom });
    this.driver = new Driver(
      { log, stateMachine: machine, clock: this.#clock.forDriver, ...(peers && { peers }) },
      driverOptions(options, { hasRoom: () => reserve.hasRoom(), onReady: () => this.#leads.resolve() }),
    );
    // A driver without peers sends no snapshots, but backups are made of them too.
    if (peers === undefined)
      this.snapshots.serve({ describe: (index) => this.driver.snapshotMeta(index), failed: () => undefined });
    this.replica = new LocalReplica({
      consensus: timedConsensus(this.driver, observer),
      machine,
      diskLow,
      lowDisks: () => membership?.lowDisks(this.driver, diskLow()) ?? [],
      fenced: (transaction) => this.#fence.refusal(transaction),
    });
  }

  /** Opens the log, the state and the driver over them. @throws StartError, StorageDamaged, StorageFailed, LogDamage */
  static async open({
    directory,
    disk,
    ...options
  }: StorageOptions & { readonly directory: string; readonly disk: Disk }): Promise<RaftEngine> {
    const { raft, membership, onFatal: onFailure } = options;
    const opened = new AsyncDisposableStack(); // a start that fails is repeated, so it must leave no file open
    try {
      const log = await SegmentLog.open(directory, { onFailure, disk });
      opened.defer(() => new Promise((resolve) => log.close(() => resolve())));
      if (membership === undefined && !runsWithoutPeers(log.start))
        throw new StartError(
          `cluster_addr is missing, but data_dir belongs to a cluster that has or had other members: ${portRemedy}`,
        );
      const machine = await KeyValueMachine.open({ directory: log.stateDirectory, base: log.start.base.index, onFailure });
      opened.defer(() => machine.close());
      log.verifyAgainstState(machine.flushedAtOpen);
      const reserve = await DiskReserve.start(directory, { reserveBytes: raft.disk_reserve });
      opened.defer(() => reserve.stop());
      return new RaftEngine({ log, machine, reserve, disk }, options);
    } catch (error) {
      await opened.disposeAsync().catch(() => undefined); // the first error is the cause
      throw error;
    }
  }

  /** Refuses what this fence refuses from now on. Before this call, what a node without a cluster port refuses. */
  useFence(fence: Fence): void {
    this.#fence = fence;
  }

  diskLow(): boolean {
    return this.#reserve.diskLow();
  }

  /** Size of the disk in bytes; undefined if it cannot be read. */
  get diskBytes(): number | undefined {
    return this.#reserve.totalBytes;
  }

  get diskStalledMs(): number {
    return this.driver.diskStalledMs;
  }

  get restoredBy(): string | undefined {
    return this.machine.restoredBy;
  }

  get replication(): ReplicationState | undefined {
    return this.machine.replication;
  }

  get featureLevel(): FeatureLevel {
    return this.machine.featureLevel;
  }

  get leads(): Promise<void> {
    return this.#leads.promise;
  }

  status(): DriverStatus {
    return this.driver.status();
  }

  scopeDigestAt(position: LogIndex): bigint | undefined {
    return this.machine.scopeDigestAt(position);
  }

  isAwake(): boolean {
    return this.#clock.isAwake(this.driver);
  }

  lease(): Grant | undefined {
    return this.#clock.lease(this.driver);
  }

  holdsLease(): boolean {
    return this.#clock.holdsLease(this.driver);
  }

  clockJumpedMs(): number {
    return this.#clock.jumpedMs();
  }

  async transferLeadership(): Promise<void> {
    if (this.driver.status().role !== 'leader' || this.driver.consensus().conf.voters.length < 2) return;
    await new Promise((resolve) => this.driver.transfer(undefined, resolve));
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#leads.reject(new StoreError('stopped', 'this node is stopping'));
    await new Promise<void>((resolve, reject) => this.driver.stop((error) => (error ? reject(error) : resolve())));
    await this.snapshots.close();
    await this.machine.close();
    await this.#reserve.stop();
  }
}

const portRemedy = 'set cluster_addr to the address that this node had';

/** Returns the options of the driver. @param onReady - this node leads and has applied every acknowledged entry */
function driverOptions(
  { raft, membership, onFatal, events, onLease }: StorageOptions,
  { hasRoom, onReady }: { readonly hasRoom: () => boolean; readonly onReady: () => void },
): DriverOptions {
  const configurationChanged = (): void => events.emit('configuration');
  return {
    ...membership?.driver,
    onFatal,
    onConfiguration: configurationChanged,
    onConfCommitted: configurationChanged,
    onStatus: (status) => {
      if (status.ready) onReady();
      events.emit('status', status);
    },
    hasRoom,
    ...(onLease && { onLease }),
    limits: raftLimits(raft),
  };
}

/** Consensus that reports how long each commit took, and its steps if the request is traced. */
function timedConsensus(driver: Driver<CommitResult>, observer: NodeObserver): Consensus {
  return {
    propose: (data, done) => {
      const startMs = performance.now();
      const traced = tracedProposal(observer.tracer?.current());
      driver.propose(
        data,
        (outcome) => {
          if (outcome.kind === 'applied') observer.committed(performance.now() - startMs);
          traced?.ended(outcome.kind !== 'applied');
          done(outcome);
        },
        traced,
      );
    },
    readIndex: (done) => driver.readIndex(done),
    status: () => driver.status(),
  };
}

/**
 * Starts the spans of a proposal that is a part of `request`: `propose` until its outcome, with `commit` from the log to a quorum and
 * `apply` after that. Undefined if the request is not traced.
 */
function tracedProposal(request: Span | undefined): (ProposalObserver & { ended(failed: boolean): void }) | undefined {
  const propose = request?.child('propose');
  if (propose === undefined) return undefined;
  let step: Span | undefined;
  return {
    appended: (index, term) => {
      propose.set('transitd.raft.index', index);
      propose.set('transitd.raft.term', term);
      step = propose.child('commit');
    },
    committed: () => {
      step?.end();
      step = propose.child('apply');
    },
    ended: (failed) => {
      step?.end(failed);
      propose.end(failed);
    },
  };
}

const systemRandom: Random = { uint32: () => randomBytes(4).readUInt32BE() };

const noLink: SnapshotLink = { open: () => Promise.reject(new StoreError('stopped', 'this node has no peers')) };
