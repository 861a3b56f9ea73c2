import { randomUUID } from 'node:crypto';
import type { LogIndex } from '@transitd/raft-core';
import { type OutcomeLog, type PrimaryCluster, type PrimaryNodes, snapshotToSend } from '@transitd/replication';
import {
  type EpochName,
  type FeatureLevel,
  positionOf,
  type ReplicatedSnapshot,
  type ReplicationState,
} from '@transitd/storage-fsm';
import { commitStep, type ReplicationParts } from './replication-parts.ts';

/** This node as the active node of a primary. */
export class PrimarySide implements PrimaryCluster {
  readonly outcomes: OutcomeLog;
  readonly #parts: ReplicationParts;

  constructor(parts: ReplicationParts, outcomes: OutcomeLog) {
    this.#parts = parts;
    this.outcomes = outcomes;
  }

  state(): ReplicationState | undefined {
    return this.#parts.isActive() ? this.#parts.storage.machine.replication : undefined;
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

  wholeState(): Promise<ReplicatedSnapshot | undefined> {
    return snapshotToSend(this.#parts.storage.machine);
  }

  rootKey(): Promise<Uint8Array> {
    return this.#parts.barrier.transfer.rootKey();
  }

  newAttempt(): string {
    return randomUUID();
  }

  async superseded(by: EpochName): Promise<void> {
    this.#parts.log.error({ epoch: by.number }, 'another cluster of the set was promoted: this cluster accepts no more writes');
    await commitStep(this.#parts, { kind: 'supersede', by });
  }

  /** Without a fence, no write depends on the answers of a secondary. */
  answered(): void {}

  nodes(): PrimaryNodes {
    return this.#parts.cluster.primaryNodes;
  }
}
