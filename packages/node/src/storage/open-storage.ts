import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { MembershipPorts, Storage } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import type { NodeObserver } from '@transitd/process';
import {
  type ConfState,
  Driver,
  type DriverLimits,
  type DriverStatus,
  driverLimits,
  type LogIndex,
  type NodeId,
  type Random,
} from '@transitd/raft-core';
import {
  type CommitResult,
  type Consensus,
  type Disk,
  DiskReserve,
  KeyValueMachine,
  LocalReplica,
  type LocalReplicaParts,
  NodeSnapshots,
  SegmentLog,
  type SnapshotLink,
  StoreError,
} from '@transitd/storage-fsm';
import { LeaseClock } from '../clock/lease-clock.ts';
import { tracedProposal } from './traced-proposal.ts';

export interface StorageOptions extends Pick<Config, 'raft'> {
  /** Called once when the disk failed or an invariant was violated: the process must end. */
  readonly onFatal: (error: Error) => void;
  readonly onStatus: (status: DriverStatus) => void;
  /** The configuration in force, or the newest committed one, has changed. */
  readonly onConfiguration: () => void;
  /** A clock of the machine jumped by this many milliseconds against the monotonic one: no earlier lease or heartbeat counts. */
  readonly onClockJump?: (ms: number) => void;
  /** @see LocalReplicaParts.fenced */
  readonly fenced?: LocalReplicaParts['fenced'];
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

/** Opens the log, the state and the driver over them. @throws StorageDamaged, StorageFailed, LogDamage */
export async function openStorage({
  directory,
  disk,
  raft,
  onFatal,
  onStatus,
  onConfiguration,
  onClockJump,
  onLease,
  fenced,
  observer,
  membership,
}: StorageOptions & { readonly directory: string; readonly disk: Disk }): Promise<Storage> {
  const log = await SegmentLog.open(directory, { onFailure: onFatal, disk });
  const machine = await KeyValueMachine.open({ directory: log.stateDirectory, base: log.start.base.index, onFailure: onFatal });
  log.verifyAgainstState(machine.flushedAtOpen);
  const reserve = await DiskReserve.start(directory, { reserveBytes: raft.disk_reserve });
  const { promise: leads, resolve: nowLeads, reject: neverLeads } = Promise.withResolvers<void>();
  leads.catch(() => undefined); // a rejection reaches the callers that await this promise; there may be none
  const snapshots = new NodeSnapshots({
    log,
    machine,
    disk,
    diskLow: () => reserve.diskLow(),
    link: membership?.link ?? noLink,
    onFetchFailed: (error) => membership?.onFetchFailed(error),
  });
  const peers = membership?.peers({ ...log.start, snapshots, random: systemRandom });
  const leaseClock = new LeaseClock({ leaseMs: raft.lease, onJump: onClockJump });
  const driver = new Driver<CommitResult>(
    { log, stateMachine: machine, clock: leaseClock.forDriver, ...(peers && { peers }) },
    {
      ...(membership && {
        removed: membership.removed ?? false,
        onRemoved: (atIndex: LogIndex) => membership.onRemoved?.(atIndex),
        removedAt: (id: NodeId) => membership.removedAt?.(id),
        promotes: (id: NodeId, conf: ConfState) => membership.promotes?.(id, conf) ?? false,
      }),
      onFatal,
      onConfiguration,
      onConfCommitted: onConfiguration,
      onStatus: (status) => {
        if (status.ready) nowLeads();
        onStatus(status);
      },
      hasRoom: () => reserve.hasRoom(),
      ...(onLease && { onLease }),
      limits: raftLimits(raft),
    },
  );
  // A driver without peers sends no snapshots, but backups are made of them too.
  if (peers === undefined) snapshots.serve({ describe: (index) => driver.snapshotMeta(index), failed: () => undefined });
  const stop = async (): Promise<void> => {
    neverLeads(new StoreError('stopped', 'this node is stopping'));
    await new Promise<void>((resolve, reject) => driver.stop((error) => (error ? reject(error) : resolve())));
    await snapshots.close();
    await machine.close();
    await reserve.stop();
  };
  let stopped: Promise<void> | undefined;
  return {
    replica: new LocalReplica({
      consensus: timedConsensus(driver, observer),
      machine,
      diskLow: () => reserve.diskLow(),
      lowDisks: () => membership?.lowDisks() ?? [],
      ...(fenced && { fenced }),
    }),
    driver,
    machine,
    snapshots,
    status: () => driver.status(),
    diskLow: () => reserve.diskLow(),
    get diskStalledMs() {
      return driver.diskStalledMs;
    },
    electedWithinMs: 2 * raft.election_timeout,
    get replication() {
      return machine.replication;
    },
    scopeDigestAt: (position) => machine.scopeDigestAt(position),
    get featureLevel() {
      return machine.featureLevel;
    },
    transferLeadership: async () => {
      if (driver.status().role !== 'leader' || driver.consensus().conf.voters.length < 2) return;
      await new Promise((resolve) => driver.transfer(undefined, resolve));
    },
    isAwake: () => leaseClock.isAwake(driver),
    holdsLease: () => leaseClock.holdsLease(driver),
    clockJumpedMs: () => leaseClock.jumpedMs(),
    leads,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
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

const systemRandom: Random = { uint32: () => randomBytes(4).readUInt32BE() };

const noLink: SnapshotLink = { open: () => Promise.reject(new StoreError('stopped', 'this node has no peers')) };
