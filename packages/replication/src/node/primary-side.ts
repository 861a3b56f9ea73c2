import { randomUUID } from 'node:crypto';
import type { Barrier } from '@transitd/barrier';
import type { Cluster, Storage } from '@transitd/cluster';
import type { Logger, RecordClock } from '@transitd/process';
import type { LogIndex } from '@transitd/raft-core';
import {
  type EpochName,
  type FeatureLevel,
  positionOf,
  type ReplicatedSnapshot,
  type ReplicationState,
  sameEpoch,
} from '@transitd/storage-fsm';
import type { ActivationToken } from '../port/activation-token.ts';
import { ReplicationPort } from '../port/replication-port.ts';
import { SecondaryDesk } from '../port/secondary-desk.ts';
import type { StoredRegistry } from '../registry/stored-registry.ts';
import type { WriteFence } from '../roles/write-fence.ts';
import { setSealOf } from '../scope.ts';
import type { PrimaryCluster } from '../sessions/session-ports.ts';
import { snapshotToSend } from '../sessions/state-frames.ts';
import { addressesMax, authoritiesMax, type PrimaryNodes } from '../stream/frame.ts';
import type { OutcomeLog } from '../stream/outcome-log.ts';
import type { ReplicationRole } from './replication-role.ts';
import type { SuccessionKey } from './succession-key.ts';

interface PrimarySideOptions {
  readonly storage: Pick<Storage, 'driver' | 'machine'>;
  readonly transfer: Barrier['transfer'];
  readonly cluster: Cluster;
  readonly registry: StoredRegistry;
  readonly outcomes: OutcomeLog;
  readonly fence: WriteFence;
  readonly succession: SuccessionKey;
  readonly clock: RecordClock;
  readonly log: Logger;
}

/** The state of a secondary as its primary knows it. */
export interface SecondaryView {
  readonly secondary: string;
  readonly isConnected: boolean;
  /** The service index that it has confirmed on this connection. */
  readonly acknowledged?: number | undefined;
  readonly lag?: { readonly entries: number; readonly ms: number };
  /** Time since it was heard. */
  readonly silentMs?: number;
  /** The number of a later epoch that it has named without a proof. */
  readonly unprovenEpoch?: number;
}

/**
 * This node as the active node of a primary, and the part of its cluster port that secondaries use. That is open while this cluster is a
 * primary and this node is unsealed; a node that is not active refers secondaries to the active one.
 */
export class PrimarySide implements PrimaryCluster {
  readonly outcomes: OutcomeLog;
  /** Issues activation tokens, and exchanges them for certificates. */
  readonly desk: SecondaryDesk;
  readonly #role: ReplicationRole;
  readonly #options: PrimarySideOptions;
  #port: ReplicationPort | undefined;
  /** The epochs that secondaries have named without a proof since this node started, by secondary. */
  readonly #unproven = new Map<string, EpochName>();
  #statesSent = 0;
  #onAcknowledged: () => void = () => undefined;

  constructor(role: ReplicationRole, options: PrimarySideOptions) {
    this.#role = role;
    this.#options = options;
    this.outcomes = options.outcomes;
    const { storage, registry, cluster, clock } = options;
    this.desk = new SecondaryDesk({ registry, clusterId: storage.driver.status().clusterId, cluster, set: this, clock });
  }

  /** The replication set as a new secondary has to know it. @throws ReplicationError `wrong_mode`; StoreError */
  get offered(): Pick<ActivationToken, 'set' | 'fenceMs' | 'seal'> {
    const { set, fenceMs, local } = this.#role.require('primary');
    return { set, seal: setSealOf(local), ...(fenceMs !== undefined && { fenceMs }) };
  }

  /** Opens the port for secondaries. @throws StoreError, CodecError */
  async openPort(): Promise<void> {
    if (this.#port !== undefined) return;
    const { registry, cluster, clock, log } = this.#options;
    await registry.refresh();
    this.#port = new ReplicationPort({ primary: this, role: this.#role, desk: this.desk, registry, cluster, clock, log });
    cluster.serveGuests(this.#port);
  }

  /** Called after this node has applied entries. */
  progress(): void {
    this.#port?.progress();
  }

  /** Ends the connections of all secondaries. */
  disconnect(): void {
    this.#port?.disconnect();
  }

  closePort(): void {
    if (this.#port === undefined) return;
    this.#options.cluster.serveGuests(undefined);
    this.#port.close();
    this.#port = undefined;
  }

  /** The secondaries with an open connection. */
  get connected(): ReplicationPort['connected'] {
    return this.#port?.connected ?? [];
  }

  /** Each registered secondary, with its connection if there is one; none on a node that is not the active one of a primary. */
  get secondaries(): readonly SecondaryView[] {
    if (this.#port === undefined || !this.#role.isActive) return [];
    const connected = new Map(this.#port.connected.map((one) => [one.secondary, one]));
    return this.#options.registry.current.registrations.map(({ secondary }) => {
      const connection = connected.get(secondary);
      const unprovenEpoch = this.#unproven.get(secondary)?.number;
      const claim = unprovenEpoch === undefined ? {} : { unprovenEpoch };
      if (connection === undefined) return { secondary, isConnected: false, ...claim };
      const { acknowledged, lag, silentMs } = connection;
      return { ...claim, secondary, isConnected: true, acknowledged: acknowledged?.index, lag, silentMs };
    });
  }

  /** Calls the listener when a secondary has confirmed a position. */
  onAcknowledged(listener: () => void): void {
    this.#onAcknowledged = listener;
  }

  state(): ReplicationState | undefined {
    return this.#role.activeState;
  }

  level(): FeatureLevel {
    return this.#options.storage.machine.featureLevel;
  }

  position(): LogIndex {
    const { applied, replication } = this.#options.storage.machine;
    return replication === undefined ? 0 : positionOf(replication, applied.appliedIndex);
  }

  digest(at: LogIndex): bigint | undefined {
    return this.#options.storage.machine.scopeDigestAt(at);
  }

  async wholeState(): Promise<ReplicatedSnapshot | undefined> {
    const snapshot = await snapshotToSend(this.#options.storage.machine);
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
    const { members, authorities } = this.#options.cluster.membershipList;
    return {
      addresses: members.map(({ clusterAddress }) => clusterAddress).slice(0, addressesMax),
      authorities: authorities.map((authority) => authority.toString()).slice(0, authoritiesMax),
    };
  }
}
