import { randomBytes, randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { bootstrapBase, type Clock, Driver } from '@transitd/raft-core';
import type { CommitResult } from '@transitd/storage-fsm';
import { createNode, DiskReserve, hasNode, KeyValueMachine, LocalReplica, type Replica, SegmentLog } from '@transitd/storage-fsm';
import type { Config } from '../config.ts';

/** The event loop and its clock, as raft-core's driver sees them. */
export const systemClock: Clock = {
  now: () => performance.now(),
  afterTurn: (task) => void setImmediate(task),
  every: (intervalMs, task) => {
    const timer = setInterval(task, intervalMs);
    return () => clearInterval(timer);
  },
};

/** Consensus and the records of one node. */
export interface Storage {
  readonly replica: Replica;
  /** Resolves when this node, its cluster's only voter, leads and has applied everything that was ever acknowledged. */
  readonly leads: Promise<void>;
  /** Finishes the writes that were taken, flushes and lets go of the data directory. */
  stop(): Promise<void>;
}

type StorageOptions = Pick<Config, 'data_dir' | 'raft'> & {
  /** Called once when the disk failed or a rule was broken: the process must end. */
  readonly onFatal: (error: Error) => void;
};

/** Whether a node was made in this directory. @throws StorageDamaged */
export const holdsNode = (directory: string): Promise<boolean> => hasNode(directory);

/** Makes the first node of a new cluster: its only voter. */
export async function foundCluster(directory: string): Promise<void> {
  // 48 random bits, never 0: an id stands for one disk and is never used again.
  const nodeId = randomBytes(6).readUIntBE(0, 6) || 1;
  await createNode(directory, { clusterId: randomUUID(), nodeId, base: bootstrapBase(nodeId) });
}

/**
 * Opens the log and the records and begins to work. Resolves before the node leads.
 * @throws StorageDamaged, StorageInUse, StorageFailed, LogDamage
 */
export async function openStorage({ data_dir: directory, raft, onFatal }: StorageOptions): Promise<Storage> {
  const log = await SegmentLog.open(directory, { onFailure: onFatal });
  const machine = await KeyValueMachine.open({ directory: log.stateDirectory, base: log.start.base.index, onFailure: onFatal });
  log.verifyAgainstState(machine.flushedAtOpen);
  const reserve = await DiskReserve.start(directory, { reserveBytes: raft.disk_reserve });
  const { promise: leads, resolve: nowLeads } = Promise.withResolvers<void>();
  const driver = new Driver<CommitResult>(
    { log, stateMachine: machine, clock: systemClock },
    {
      onFatal,
      onStatus: ({ ready }) => ready && nowLeads(),
      limits: {
        compactAfterEntries: raft.snapshot_threshold,
        keepTrailingEntries: raft.trailing_logs,
      },
    },
  );
  driver.start();
  return {
    replica: new LocalReplica({ consensus: driver, machine, diskLow: () => reserve.diskLow() }),
    leads,
    stop: async () => {
      await new Promise<void>((resolve, reject) => driver.stop((error) => (error ? reject(error) : resolve())));
      await machine.close();
      await reserve.stop();
    },
  };
}
