import { setTimeout as pause } from 'node:timers/promises';
import type { Barrier } from '@transitd/barrier';
import type { MemberEvents, NodeRegistry, OutsideEngine } from '@transitd/cluster';
import { type Logger, LogLimit, type NodeObserver } from '@transitd/process';
import { type DriverStatus, type Grant, grantUntil, isHeld, type ReadOutcome } from '@transitd/raft-core';
import { CopyFault, type Etcd, EtcdReplica } from '@transitd/storage-etcd';
import { type FeatureLevel, type Replica, snapshotOfRecords } from '@transitd/storage-fsm';
import { LeaseClock, etcdLeaseSeconds as leaseSeconds } from '../clock/lease-clock.ts';
import type { SnapshotEngine } from '../snapshots/snapshots.ts';

/** Longest interval of the active node's heartbeats. Each lets it serve reads for more than twice as long. */
const heartbeatMaxMs = 1000;
const tickMs = 50;
/** For how long a node that gave the active role up leaves it to others. */
const yieldMs = 2000;
/** A node without this cluster's keys waits so long for the role before it creates the cluster. */
const foundWithinMs = 15_000;

interface EtcdEngineOptions {
  readonly etcd: Etcd;
  readonly prefix: string;
  readonly nodeId: number;
  readonly heartbeatMs: number;
  readonly log: Logger;
  readonly observer: NodeObserver;
  /** Gets changes of status and registered nodes, and clock jumps. */
  readonly events: MemberEvents;
  /**
   * Reports until when other threads may rely on the role of the active node; undefined while this node does not have it. Called every 50
   * milliseconds, and before anything that ends the role or the registration of this node.
   */
  readonly onLease: (endMs: number | undefined) => void;
  /** This node must end: the cluster was raised to a feature level that it does not support. */
  readonly onFatal: (error: Error) => void;
}

const refused: ReadOutcome = { kind: 'refused', reason: 'notLeader' };

/** The engine of a node whose consensus and records are in etcd. */
export class EtcdEngine implements OutsideEngine {
  readonly kind = 'etcd';
  readonly replica: Replica;
  readonly registry: NodeRegistry;
  /** Backups and restores. */
  readonly snapshots: SnapshotEngine;
  readonly diskStalledMs = 0;
  readonly electedWithinMs = (leaseSeconds + 1) * 1000;
  readonly replication = undefined;
  readonly #options: EtcdEngineOptions;
  readonly #etcd: EtcdReplica;
  readonly #clock: LeaseClock;
  readonly #ends: (() => void)[] = [];
  #last: DriverStatus;
  #records: readonly Uint8Array[] = [];

  private constructor(options: EtcdEngineOptions, replica: EtcdReplica) {
    this.#options = options;
    this.#etcd = replica;
    this.#clock = new LeaseClock({ leaseMs: leaseSeconds * 1000, onJump: (ms) => options.events.emit('clockJump', { ms }) });
    this.registry = this.#newRegistry();
    this.snapshots = etcdSnapshots(replica);
    this.replica = observedReplica(replica, () => this.status(), options.observer);
    this.#last = this.status();
  }

  /** Begins to report changes. Call it when everything listens to the events. */
  start(): void {
    const observe = (): void => this.#observe();
    this.#ends.push(this.#etcd.observe(observe), this.#clock.forDriver.every(tickMs, observe));
  }

  /** Reads the whole state below the prefix. @throws EtcdError, CopyFault, TypeError, UnsupportedLevel */
  static async open(options: EtcdEngineOptions): Promise<EtcdEngine> {
    const { etcd, prefix, nodeId, log } = options;
    const heartbeatMs = Math.min(options.heartbeatMs, heartbeatMaxMs);
    const limit = new LogLimit({ log });
    const onFault = (error: Error): void => {
      const reason = { reason: error.message };
      if (error instanceof CopyFault)
        limit.write('error', 'copy', reason, 'the copy of the records in etcd is wrong; reading all again');
      else limit.write('warn', 'etcd', reason, 'a call of etcd failed; retrying');
    };
    return new EtcdEngine(
      options,
      await EtcdReplica.open({
        ...{ etcd, prefix, nodeId, heartbeatMs, leaseSeconds, onFault },
        mayLead: false,
        onUnsupported: options.onFatal,
      }),
    );
  }

  status(): DriverStatus {
    const { valuesWritten: _values, diskLow: _low, ...status } = this.#etcd.status();
    return { ...status, ready: status.ready && this.#etcd.holdsLease() };
  }

  isAwake(): boolean {
    return this.#clock.isAwake(this.#leadership);
  }

  lease(): Grant | undefined {
    return this.#clock.lease(this.#leadership);
  }

  holdsLease(): boolean {
    return this.#clock.holdsLease(this.#leadership);
  }

  clockJumpedMs(): number {
    return this.#clock.jumpedMs();
  }

  get restoredBy(): string | undefined {
    return this.#etcd.restoredBy;
  }

  get featureLevel(): FeatureLevel {
    return this.#etcd.featureLevel;
  }

  diskLow(): boolean {
    return false;
  }

  scopeDigestAt(): undefined {
    return undefined;
  }

  /** Whether this node takes the active role while no node has it. */
  set mayLead(mayLead: boolean) {
    this.#etcd.mayLead = mayLead;
  }

  /** Resolves when this node is the active one, or another node was faster and has initialized the cluster. */
  async leadsOr(barrier: Pick<Barrier, 'state'>): Promise<void> {
    for (const endMs = performance.now() + foundWithinMs; performance.now() < endMs; await pause(tickMs))
      if (this.status().ready || barrier.state.initialized) return;
  }

  async transferLeadership(): Promise<void> {
    const { term, role } = this.status();
    const isAlone = [...this.#etcd.nodes.keys()].every((id) => id === this.#options.nodeId);
    if (role !== 'leader' || isAlone) return;
    this.#etcd.yieldFor(yieldMs);
    for (const endMs = performance.now() + yieldMs; performance.now() < endMs; await pause(tickMs))
      if (this.status().term > term) return;
  }

  async stop(): Promise<void> {
    for (const end of this.#ends) end();
    await this.#etcd.close();
  }

  readonly #leadership = {
    leaseEndMs: (): number | undefined => (this.#etcd.holdsLease() ? this.#etcd.leaseEndMs : undefined),
    readIndex: (done: (outcome: ReadOutcome) => void): void => {
      this.#etcd.fresh().then(
        () => done(this.#etcd.holdsLease() ? { kind: 'readable', index: this.status().appliedIndex } : refused),
        () => done(refused),
      );
    },
  };

  /** A registration from before a clock jump may have ended. */
  #newRegistry(): NodeRegistry {
    const [etcd, clock] = [this.#etcd, this.#clock];
    return {
      name: 'etcd',
      get nodes() {
        return etcd.nodes;
      },
      get registeredUntilMs() {
        const clockJumpedMs = clock.jumpedMs();
        const registration = grantUntil(etcd.registeredUntilMs, leaseSeconds * 1000);
        return isHeld(registration, { clockJumpedMs, nowMs: performance.now() }) ? registration.endMs : Number.NEGATIVE_INFINITY;
      },
      register: (record) => etcd.register(record),
      newestIndex: () => etcd.newestIndex(),
    };
  }

  #observe(): void {
    this.#options.onLease(this.#leadership.leaseEndMs()); // first: threads must not outlive the role
    const status = this.status();
    const { role, ready, term, leader } = this.#last;
    this.#last = status;
    const records = [...this.#etcd.nodes.values()];
    const isSame = records.length === this.#records.length && records.every((record, index) => record === this.#records[index]);
    this.#records = records;
    if (!isSame) this.#options.events.emit('configuration');
    if (status.role !== role || status.ready !== ready || status.term !== term || status.leader !== leader)
      this.#options.events.emit('status', status);
  }
}

/** Returns a replica that reports how long each commit took, and the status of its engine. */
const observedReplica = (replica: EtcdReplica, status: () => DriverStatus, observer: NodeObserver): Replica => ({
  get: (path) => replica.get(path),
  range: (query) => replica.range(query),
  paths: (query) => replica.paths(query),
  watch: (prefix, listener) => replica.watch(prefix, listener),
  fresh: () => replica.fresh(),
  commit: async (transaction) => {
    const startMs = performance.now();
    const result = await replica.commit(transaction);
    observer.committed(performance.now() - startMs);
    return result;
  },
  status: () => ({ ...replica.status(), ...status() }),
});

/**
 * Returns backups and restores over etcd. A restore keeps nothing: the nodes certify themselves with the authority of the restored state,
 * as they do after each start.
 */
const etcdSnapshots = (replica: EtcdReplica): SnapshotEngine => ({
  replica,
  get featureLevel() {
    return replica.featureLevel;
  },
  set: undefined,
  keep: [],
  diskLow: () => false,
  backup: async () => {
    await replica.fresh();
    return snapshotOfRecords(replica.state());
  },
  clearLeftovers: (underWay) => replica.clearRestores(underWay),
});
