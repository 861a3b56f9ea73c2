import { randomBytes, randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { MembershipPorts, Storage } from '@transitd/cluster';
import { type Config, leaseMsMax } from '@transitd/configuration';
import { type NodeObserver, requireOwnerOnly, StartError } from '@transitd/process';
import {
  bootstrapBase,
  type Clock,
  type ConfState,
  Driver,
  type DriverLimits,
  type DriverStatus,
  type LogIndex,
  type NodeId,
  type Random,
  type SnapshotMeta,
} from '@transitd/raft-core';
import {
  type CommitResult,
  type Consensus,
  createNode,
  type Disk,
  DiskReserve,
  hasNode,
  KeyValueMachine,
  LocalReplica,
  type LockedDirectory,
  lockNodeDirectory,
  NodeSnapshots,
  SegmentLog,
  type SnapshotLink,
  StorageInUse,
  StoreError,
} from '@transitd/storage-fsm';
import { ClockJump, type ClockReading, readClocks, readWallClock } from '../clock/clock-jump.ts';
import { Wakefulness } from '../clock/wakefulness.ts';

/** The event loop and its clock, as raft-core's driver sees them. */
export const systemClock: Clock = {
  now: () => performance.now(),
  afterTurn: (task) => void setImmediate(task),
  every: (intervalMs, task) => {
    const timer = setInterval(task, intervalMs);
    return () => clearInterval(timer);
  },
};

const systemRandom: Random = { uint32: () => randomBytes(4).readUInt32BE() };

interface StorageOptions extends Pick<Config, 'raft'> {
  /** Called once when the disk failed or a rule was broken: the process must end. */
  readonly onFatal: (error: Error) => void;
  readonly onStatus: (status: DriverStatus) => void;
  /** The configuration in force, or the newest committed one, has changed. */
  readonly onConfiguration: () => void;
  /** A clock of the machine jumped by so many milliseconds against the monotonic one: neither a lease nor a heartbeat from before it counts. */
  readonly onClockJump?: (ms: number) => void;
  readonly observer: NodeObserver;
  /** Absent for a node that nobody can join. */
  readonly membership?: MembershipPorts;
}

/** What the driver is told. Half the jitter of the paper's: with three to five nodes, two that campaign at once are rare enough. */
export const raftLimits = (raft: Config['raft']): Partial<DriverLimits> => ({
  heartbeatMs: raft.heartbeat,
  electionMs: raft.election_timeout,
  electionJitterMs: raft.election_timeout / 2,
  leaseMs: raft.lease,
  compactAfterEntries: raft.snapshot_threshold,
  keepTrailingEntries: raft.trailing_logs,
});

/** The data directory, this process's alone from `open` to `close`, whether it holds a node or not. */
export class DataDirectory {
  readonly #path: string;
  readonly #locked: LockedDirectory;

  private constructor(path: string, locked: LockedDirectory) {
    this.#path = path;
    this.#locked = locked;
  }

  /** @throws StartError when it is not ours alone or cannot be used, StorageInUse */
  static async open(path: string): Promise<DataDirectory> {
    try {
      if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === false) throw new StartError(`${path} is no directory`);
      requireOwnerOnly(path);
      requireOwnerOnly(join(path, 'node.state'));
      return new DataDirectory(path, await lockNodeDirectory(path));
    } catch (error) {
      if (error instanceof StartError) throw new StartError(`data_dir: ${error.message}`);
      if (error instanceof StorageInUse) throw error;
      const { code, message } = error as NodeJS.ErrnoException;
      throw new StartError(`data_dir: ${path} cannot be used: ${code ?? message}`);
    }
  }

  /** Whether a node was made here. @throws StorageDamaged */
  holdsNode(): Promise<boolean> {
    return hasNode(this.#path);
  }

  /** Makes the first node of a new cluster: its only voter. */
  async bootstrapCluster(): Promise<void> {
    const nodeId = newNodeId();
    await createNode(this.#path, { clusterId: randomUUID(), nodeId, base: bootstrapBase(nodeId) }, this.#locked.disk);
  }

  /** Makes a node that was admitted to a cluster: its log and its configuration come from there. */
  async joinCluster({ clusterId, nodeId }: { readonly clusterId: string; readonly nodeId: NodeId }): Promise<void> {
    await createNode(this.#path, { clusterId, nodeId, base: emptyBase }, this.#locked.disk);
  }

  get path(): string {
    return this.#path;
  }

  /**
   * Opens the log and the records and begins to work. Resolves before the node leads.
   * @throws StorageDamaged, StorageInUse, StorageFailed, LogDamage
   */
  openStorage(options: StorageOptions): Promise<Storage> {
    return openStorage({ ...options, directory: this.#path, disk: this.#locked.disk });
  }

  close(): Promise<void> {
    return this.#locked.unlock();
  }
}

/** The same, and each commit is told with the time that it took. */
function observed(driver: Driver<CommitResult>, observer: NodeObserver): Consensus {
  return {
    propose: (data, done) => {
      const begunMs = performance.now();
      driver.propose(data, (outcome) => {
        if (outcome.kind === 'applied') observer.committed(performance.now() - begunMs);
        done(outcome);
      });
    },
    readIndex: (done) => driver.readIndex(done),
    status: () => driver.status(),
  };
}

const noLink: SnapshotLink = { open: () => Promise.reject(new StoreError('stopped', 'this node has no peers')) };

/** 48 random bits, never 0: an id stands for one disk and is never used again. */
export const newNodeId = (): NodeId => randomBytes(6).readUIntBE(0, 6) || 1;

const emptyBase: SnapshotMeta = {
  index: 0,
  term: 0,
  conf: { voters: [], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false, context: new Uint8Array() },
  confIndex: 0,
};

async function openStorage({
  directory,
  disk,
  raft,
  onFatal,
  onStatus,
  onConfiguration,
  onClockJump,
  observer,
  membership,
}: StorageOptions & { readonly directory: string; readonly disk: Disk }): Promise<Storage> {
  const log = await SegmentLog.open(directory, { onFailure: onFatal, disk });
  const machine = await KeyValueMachine.open({ directory: log.stateDirectory, base: log.start.base.index, onFailure: onFatal });
  log.verifyAgainstState(machine.flushedAtOpen);
  const reserve = await DiskReserve.start(directory, { reserveBytes: raft.disk_reserve });
  const { promise: leads, resolve: nowLeads, reject: neverLeads } = Promise.withResolvers<void>();
  leads.catch(() => undefined); // who waits for it hears of it; nobody has to wait
  const snapshots = new NodeSnapshots({
    log,
    machine,
    disk,
    diskLow: () => reserve.diskLow(),
    link: membership?.link ?? noLink,
    onFetchFailed: (error) => membership?.onFetchFailed(error),
  });
  const peers = membership?.peers({ ...log.start, snapshots, random: systemRandom });
  const wakefulness = new Wakefulness(leaseMsMax, performance.now());
  const clocks = new ClockJump(readClocks());
  const lookAt = (reading: ClockReading): void => {
    const jumpMs = clocks.look(reading);
    if (jumpMs === 0) return;
    wakefulness.stoodStill(clocks.jumpedMs);
    onClockJump?.(jumpMs);
  };
  const clock: Clock = {
    ...systemClock,
    every: (intervalMs, task) =>
      systemClock.every(intervalMs, () => {
        lookAt(readClocks());
        wakefulness.ticked(performance.now());
        task();
      }),
  };
  const driver = new Driver<CommitResult>(
    { log, stateMachine: machine, clock, ...(peers && { peers }) },
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
      limits: raftLimits(raft),
    },
  );
  let isAsking = false;
  const askWhetherItLeads = (): void => {
    if (isAsking) return;
    isAsking = true;
    const askedMs = performance.now();
    driver.readIndex(({ kind }) => {
      isAsking = false;
      if (kind === 'readable') wakefulness.confirmed(performance.now(), askedMs);
    });
  };
  const clockJumpedMs = (): number => {
    lookAt(readWallClock());
    return clocks.jumpedMs;
  };
  // Rounds sent before a jump have all lapsed after the time of a lease, by whichever clock.
  const holdsLease = (): boolean => performance.now() - clockJumpedMs() >= raft.lease && driver.leaseRead();
  const isAwake = (): boolean => {
    const holds = holdsLease(); // looks at the clocks too
    const isSo = wakefulness.isAwake(performance.now(), () => holds);
    if (!isSo) askWhetherItLeads();
    return isSo;
  };
  // The driver of a node without peers sends nobody a snapshot, but its operator keeps them too.
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
    replica: new LocalReplica({ consensus: observed(driver, observer), machine, diskLow: () => reserve.diskLow() }),
    driver,
    machine,
    snapshots,
    diskLow: () => reserve.diskLow(),
    isAwake,
    holdsLease,
    clockJumpedMs,
    leads,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}
