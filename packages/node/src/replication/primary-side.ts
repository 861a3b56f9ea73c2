import { randomUUID } from 'node:crypto';
import type { Barrier } from '@transitd/barrier';
import type { Cluster, Storage } from '@transitd/cluster';
import type { Logger } from '@transitd/process';
import type { LogIndex } from '@transitd/raft-core';
import { type OutcomeLog, type PrimaryCluster, type PrimaryNodes, snapshotToSend, type WriteFence } from '@transitd/replication';
import {
  type EpochName,
  type FeatureLevel,
  positionOf,
  type ReplicatedSnapshot,
  type ReplicationState,
  sameEpoch,
} from '@transitd/storage-fsm';
import type { ReplicationRole } from './replication-role.ts';
import type { SuccessionKey } from './succession-key.ts';

interface PrimarySideOptions {
  readonly machine: Storage['machine'];
  readonly transfer: Barrier['transfer'];
  readonly cluster: Pick<Cluster, 'primaryNodes'>;
  readonly outcomes: OutcomeLog;
  readonly fence: WriteFence;
  readonly succession: SuccessionKey;
  readonly log: Logger;
}

/** This node as the active node of a primary. */
export class PrimarySide implements PrimaryCluster {
  readonly outcomes: OutcomeLog;
  readonly #role: ReplicationRole;
  readonly #options: PrimarySideOptions;
  readonly #unproven = new Map<string, EpochName>();
  #statesSent = 0;
  #onAcknowledged: () => void = () => undefined;

  constructor(role: ReplicationRole, options: PrimarySideOptions) {
    this.#role = role;
    this.#options = options;
    this.outcomes = options.outcomes;
  }

  /** Calls the listener when a secondary has confirmed a position. */
  onAcknowledged(listener: () => void): void {
    this.#onAcknowledged = listener;
  }

  state(): ReplicationState | undefined {
    return this.#role.activeState;
  }

  level(): FeatureLevel {
    return this.#options.machine.featureLevel;
  }

  position(): LogIndex {
    const { applied, replication } = this.#options.machine;
    return replication === undefined ? 0 : positionOf(replication, applied.appliedIndex);
  }

  digest(at: LogIndex): bigint | undefined {
    return this.#options.machine.scopeDigestAt(at);
  }

  async wholeState(): Promise<ReplicatedSnapshot | undefined> {
    const snapshot = await snapshotToSend(this.#options.machine);
    if (snapshot !== undefined) this.#statesSent += 1;
    return snapshot;
  }

  /** Number of whole states that this node has begun to send since its start. */
  get statesSent(): number {
    return this.#statesSent;
  }

  rootKey(): Promise<Uint8Array> {
    return this.#options.transfer.rootKey();
  }

  newAttempt(): string {
    return randomUUID();
  }

  get successionKey(): Uint8Array | undefined {
    return this.#options.succession.present;
  }

  /** The epochs that secondaries have named without a proof since this node started, by secondary. */
  get unprovenClaims(): ReadonlyMap<string, EpochName> {
    return this.#unproven;
  }

  unproven(secondary: string, { number, id }: EpochName): void {
    const known = this.#unproven.get(secondary);
    if (known !== undefined && sameEpoch(known, { number, id })) return;
    this.#unproven.set(secondary, { number, id });
    this.#options.log.error(
      { secondary, epoch: number },
      'a secondary names a later epoch without a proof, and this cluster goes on serving: if that cluster was promoted, demote this one now; otherwise revoke the secondary, since its credential is in other hands',
    );
  }

  async superseded(by: EpochName): Promise<void> {
    this.#options.log.error({ epoch: by.number }, 'another cluster of the set was promoted: this cluster accepts no more writes');
    // A conflict is ignored: this cluster is then no longer the primary of the older epoch.
    await this.#role.commit({ kind: 'supersede', by });
  }

  answered(secondary: string, sentMs: number, at: EpochName): void {
    this.#options.fence.answered(secondary, sentMs, at);
  }

  acknowledged(): void {
    this.#onAcknowledged();
  }

  nodes(): PrimaryNodes {
    return this.#options.cluster.primaryNodes;
  }
}
