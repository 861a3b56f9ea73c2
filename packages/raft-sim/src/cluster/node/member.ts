import type { Fitness, LogIndex, NodeId, SnapshotMeta, TransportReceiver } from '@transitd/raft-core';
import { ObservedNode } from '../checks/observed-node.ts';
import type { LocalClock } from '../process/local-clock.ts';
import type { NodeProcess } from '../process/process.ts';
import type { SnapshotPort } from '../snapshots/snapshot-port.ts';
import type { StreamedSnapshots } from '../snapshots/streamed-snapshots.ts';
import type { DiskPart, NodeStorage, SimMachine } from '../storage/storage.ts';
import type { Host } from './host.ts';
import type { LeaseGuard } from './lease-guard.ts';
import type { ReadingThreads } from './reading-threads.ts';

/** One incarnation of a node, from its start to its end. */
export interface Incarnation {
  readonly process: NodeProcess;
  readonly machine: SimMachine;
  readonly host: Host;
  readonly snapshots: SnapshotPort | StreamedSnapshots;
  readonly startedAtMs: number;
  /** Where messages are delivered, once the host has registered. */
  readonly inbox: { receiver: TransportReceiver | undefined };
  readonly threads: ReadingThreads;
  readonly leaseGuard: LeaseGuard;
}

/** `damaged`: its disk is known to have lost something; `wiped`: its disk is gone. Neither node returns, and ids are never reused. */
export type Fate = 'healthy' | 'damaged' | 'wiped';

/** A node over all its incarnations: its disk, and the current incarnation if it runs. */
export class Member {
  readonly id: NodeId;
  readonly storage: NodeStorage;
  readonly observed: ObservedNode;
  /** The node's process, from the moment that it begins to open its storage. */
  process: NodeProcess | undefined;
  incarnation: Incarnation | undefined;
  fate: Fate = 'healthy';
  /** Whether durable data on the node's disk was destroyed. The next start must detect that. */
  isDamaged = false;
  fitness: Fitness;
  /** Whether the node has learned that it is no longer a member. It remembers that over restarts. */
  removedAt: LogIndex | undefined;
  /** The clock of the node's machine; the rate differs by node, from 0.9 to 1.1. */
  readonly clock: LocalClock;
  /** Until `untilMs` every sync takes up to `extraMs` longer; if `extraMs` is 0, it lasts until `untilMs`. */
  slowness: { untilMs: number; extraMs: number } = { untilMs: 0, extraMs: 0 };
  /** The node's program stops for a while at this call of a port from now, in the middle of a turn. */
  stall: { readonly calls: number; readonly durationMs: number; readonly stopsClock: boolean } | undefined;
  /** Until `untilMs` the node takes `entryMs` to apply each entry. */
  slowApply: { readonly untilMs: number; readonly entryMs: number } = { untilMs: 0, entryMs: 0 };
  /** Whether only the process ends if a write to the node's disk fails; otherwise the power fails too. */
  outlivesDiskErrors = false;
  /** For each part of the node's disk, the time until which no sync of that part ends. */
  readonly hangs = new Map<DiskPart, number>();
  /** Until `untilMs` snapshots stream to the node at one piece per `pieceMs`, whatever happens to its other links. */
  streaming: { untilMs: number; pieceMs: number } = { untilMs: 0, pieceMs: 0 };
  /** Called just before the node learns that a snapshot is fetched, for a scenario that delivers something else at the same time. */
  beforeSnapshot: ((meta: SnapshotMeta) => void) | undefined;
  /** The wire version that the node runs; it reads the previous one too. */
  version = 1;

  constructor(options: {
    readonly id: NodeId;
    readonly storage: NodeStorage;
    readonly clock: LocalClock;
    readonly fitness: Fitness;
  }) {
    const { id, storage, clock, fitness } = options;
    this.id = id;
    this.storage = storage;
    this.observed = new ObservedNode(storage.durable);
    this.clock = clock;
    this.fitness = fitness;
  }
}
