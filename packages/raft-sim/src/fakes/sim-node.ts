import { Driver, type DriverOptions, type DriverStatus, type NodeId } from '@transitd/raft-core';
import type { MemoryLog, MemoryLogOptions } from './memory-disk.ts';
import { MemoryDisk } from './memory-disk.ts';
import { type HistoryResult, MemoryState, MemoryStateMachine, type MemoryStateMachineOptions } from './memory-state-machine.ts';
import { type SimClock, SimProcess } from './sim-clock.ts';

export interface SimNodeOptions {
  readonly nodeId?: NodeId;
  readonly driver?: Partial<Omit<DriverOptions, 'onFatal'>>;
  readonly log?: Partial<MemoryLogOptions>;
  readonly stateMachine?: Partial<MemoryStateMachineOptions>;
}

/** One incarnation of a node, from its start to its crash or stop. */
export interface SimRun {
  readonly process: SimProcess;
  readonly log: MemoryLog;
  readonly stateMachine: MemoryStateMachine;
  readonly driver: Driver<HistoryResult>;
  /** The error that `onFatal` was called with. */
  readonly fatal: Error[];
  readonly statuses: DriverStatus[];
}

/** How much of the data under way is stored when the process dies. */
export interface Crash {
  /** Pieces (hard states, entries) of the sync under way. */
  readonly landed: number;
  readonly flushLands: boolean;
}

/** The real driver on simulated ports: a disk that survives it, and consecutive incarnations on that disk. */
export class SimNode {
  readonly clock: SimClock;
  readonly disk: MemoryDisk;
  readonly state = new MemoryState();

  constructor(clock: SimClock, { nodeId = 1 }: { readonly nodeId?: NodeId } = {}) {
    this.clock = clock;
    this.disk = new MemoryDisk({ nodeId, clusterId: 'simulated' });
  }

  /** @throws the driver's error if it refuses to run on this disk */
  start({ driver: options = {}, ...ports }: SimNodeOptions = {}): SimRun {
    const process = new SimProcess(this.clock);
    const log = this.disk.open(process, ports.log);
    const stateMachine = new MemoryStateMachine(this.state, process, ports.stateMachine);
    const fatal: Error[] = [];
    const statuses: DriverStatus[] = [];
    const driver = new Driver(
      { log, stateMachine, clock: process },
      {
        checkInvariants: true,
        ...options,
        onFatal: (error) => fatal.push(error),
        onStatus: (status) => {
          statuses.push(status);
          options.onStatus?.(status);
        },
      },
    );
    driver.start();
    return { process, log, stateMachine, driver, fatal, statuses };
  }

  crash({ process, log, stateMachine }: SimRun, { landed, flushLands }: Crash = { landed: 0, flushLands: false }): void {
    log.crash({ landed });
    stateMachine.crash({ flushLands });
    process.kill();
  }
}
