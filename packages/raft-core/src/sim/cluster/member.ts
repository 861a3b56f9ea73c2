import type { TransportReceiver } from '../../ports.ts';
import type { Fitness, LogIndex, NodeId, SnapshotMeta } from '../../types.ts';
import { MemoryDisk } from '../memory-disk.ts';
import type { MemoryLog } from '../memory-log.ts';
import type { Host } from './host.ts';
import { emptyImage, type KeyMachine, type MachineImage } from './machine.ts';
import type { NodeProcess } from './process.ts';
import type { SnapshotPort } from './snapshot-port.ts';
import { Watched } from './watched.ts';

/** One run of a node, from its start to its end. */
export interface MemberRun {
  readonly process: NodeProcess;
  readonly log: MemoryLog;
  readonly machine: KeyMachine;
  readonly host: Host;
  readonly snapshots: SnapshotPort;
  readonly startedAtMs: number;
  /** Where messages go in, once the host has said where. */
  readonly inbox: { receiver: TransportReceiver | undefined };
  /** The process was paused at some time; its next lease read shows whether it noticed. */
  wasPaused: boolean;
}

/** `damaged`: its disk is known to have lost something; `wiped`: its disk is gone. Neither comes back, ids never do. */
export type Fate = 'healthy' | 'damaged' | 'wiped';

/** A node over all its runs: what is on its disk, and the run there is. */
export class Member {
  readonly id: NodeId;
  readonly disk: MemoryDisk;
  readonly watched: Watched;
  /** The state that is durable. */
  image: MachineImage;
  run: MemberRun | undefined;
  fate: Fate = 'healthy';
  /** Something that was durable on its disk has been destroyed; its next start must find that out. */
  isDamaged = false;
  fitness: Fitness;
  /** It was told that it is no member any more, and remembers. */
  removedAt: LogIndex | undefined;
  /** Differs by node, from 0.9 to 1.1. */
  readonly clockRate: number;
  /** Until then every sync takes this much longer. */
  slowness: { untilMs: number; extraMs: number } = { untilMs: 0, extraMs: 0 };
  /** Until then what is streamed to it comes at this pace, whatever becomes of its other links. */
  streaming: { untilMs: number; pieceMs: number } = { untilMs: 0, pieceMs: 0 };
  /** The wire version that it runs; it reads the one before too. */
  version = 1;

  constructor(options: {
    readonly id: NodeId;
    readonly clusterId: string;
    readonly base: SnapshotMeta;
    readonly clockRate: number;
    readonly fitness: Fitness;
  }) {
    const { id, clusterId, base, clockRate, fitness } = options;
    this.id = id;
    this.disk = new MemoryDisk({ nodeId: id, clusterId, base });
    this.watched = new Watched(this.disk);
    this.image = emptyImage({ conf: base.conf, applied: base.index });
    this.clockRate = clockRate;
    this.fitness = fitness;
  }
}
