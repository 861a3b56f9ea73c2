import { randomUUID } from 'node:crypto';
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
import type { MaterialConfirmation } from './material-confirmation.ts';
import { commitStep, type ReplicationParts } from './replication-parts.ts';
import type { SuccessionKey } from './succession-key.ts';

/** This node as the active node of a primary. */
export class PrimarySide implements PrimaryCluster {
  readonly outcomes: OutcomeLog;
  readonly #parts: ReplicationParts;
  readonly #fence: WriteFence;
  readonly #material: Pick<MaterialConfirmation, 'acknowledged'>;
  readonly #succession: Pick<SuccessionKey, 'present'>;
  readonly #unproven = new Map<string, EpochName>();
  #statesSent = 0;

  constructor(
    parts: ReplicationParts,
    {
      outcomes,
      fence,
      material,
      succession,
    }: {
      readonly outcomes: OutcomeLog;
      readonly fence: WriteFence;
      readonly material: Pick<MaterialConfirmation, 'acknowledged'>;
      readonly succession: Pick<SuccessionKey, 'present'>;
    },
  ) {
    this.#parts = parts;
    this.#fence = fence;
    this.#material = material;
    this.#succession = succession;
    this.outcomes = outcomes;
  }

  state(): ReplicationState | undefined {
    return this.#parts.role.isActive ? this.#parts.storage.machine.replication : undefined;
  }

  level(): FeatureLevel {
    return this.#parts.storage.machine.featureLevel;
  }

  position(): LogIndex {
    const { applied, replication } = this.#parts.storage.machine;
    return replication === undefined ? 0 : positionOf(replication, applied.appliedIndex);
  }

  digest(at: LogIndex): bigint | undefined {
    return this.#parts.storage.machine.scopeDigestAt(at);
  }

  async wholeState(): Promise<ReplicatedSnapshot | undefined> {
    const snapshot = await snapshotToSend(this.#parts.storage.machine);
    if (snapshot !== undefined) this.#statesSent += 1;
    return snapshot;
  }

  /** Number of whole states that this node has begun to send since its start. */
  get statesSent(): number {
    return this.#statesSent;
  }

  rootKey(): Promise<Uint8Array> {
    return this.#parts.barrier.transfer.rootKey();
  }

  newAttempt(): string {
    return randomUUID();
  }

  get successionKey(): Uint8Array | undefined {
    return this.#succession.present;
  }

  /** The epochs that secondaries have named without a proof since this node started, by secondary. */
  get unprovenClaims(): ReadonlyMap<string, EpochName> {
    return this.#unproven;
  }

  unproven(secondary: string, { number, id }: EpochName): void {
    const known = this.#unproven.get(secondary);
    if (known !== undefined && sameEpoch(known, { number, id })) return;
    this.#unproven.set(secondary, { number, id });
    this.#parts.log.error(
      { secondary, epoch: number },
      'a secondary names a later epoch without a proof, and this cluster goes on serving: if that cluster was promoted, demote this one now; otherwise revoke the secondary, since its credential is in other hands',
    );
  }

  async superseded(by: EpochName): Promise<void> {
    this.#parts.log.error({ epoch: by.number }, 'another cluster of the set was promoted: this cluster accepts no more writes');
    // A conflict is ignored: this cluster is then no longer the primary of the older epoch.
    await commitStep(this.#parts, { kind: 'supersede', by });
  }

  answered(secondary: string, sentMs: number, at: EpochName): void {
    this.#fence.answered(secondary, sentMs, at);
  }

  acknowledged(): void {
    this.#material.acknowledged();
  }

  nodes(): PrimaryNodes {
    return this.#parts.cluster.primaryNodes;
  }
}
