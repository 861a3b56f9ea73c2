import { setTimeout as delay } from 'node:timers/promises';
import { BarrierError, type ForeignKeys, ProviderError, transferredPaths } from '@transitd/barrier';
import { reasonOf } from '@transitd/process';
import {
  type Heard,
  isBeforeRestore,
  type PrimaryNodes,
  type Proposed,
  type ReportedPosition,
  type SecondaryCluster,
  setSealOf,
} from '@transitd/replication';
import {
  type Cursor,
  cursorOf,
  type Epoch,
  type EpochName,
  type FeatureLevel,
  type ReplicationState,
  type ReplicationStep,
  StoreError,
} from '@transitd/storage-fsm';
import type { DivergedState } from './diverged-state.ts';
import { commitStep, type ReplicationParts } from './replication-parts.ts';
import type { SuccessionKey } from './succession-key.ts';

export interface SecondaryEffects {
  /** Stores where the primary's nodes are. */
  keepNodes(nodes: PrimaryNodes): void;
  /** Stores that the primary counts this secondary. */
  counted(): void;
  readonly diverged: Pick<DivergedState, 'receiving' | 'staging' | 'swapping'>;
  readonly succession: Pick<SuccessionKey, 'present'>;
}

/** How often the seal's provider is asked again for the seal of a received state. Its own back-off decides whether it is called. */
const providerRetryMs = 1_000;

/** How often local records may change while a received state is being put in place. */
const swapAttemptsMax = 8;

type Swap = ReplicationStep & { readonly kind: 'swap' };

/** This node as the active node of a secondary. */
export class SecondarySide implements SecondaryCluster {
  /** While true, heartbeats are not answered. */
  isPromoting = false;
  wantsWholeState = false;
  readonly #parts: ReplicationParts;
  readonly #effects: SecondaryEffects;
  #heard: Heard | undefined;
  #answeredMs: number | undefined;
  #rootKey: Uint8Array | undefined;
  /** The state that is being received, and its records that this cluster needs to open it, by path. */
  #receiving: { readonly attempt: string; readonly core: Map<string, Uint8Array> } | undefined;

  constructor(parts: ReplicationParts, effects: SecondaryEffects) {
    this.#parts = parts;
    this.#effects = effects;
  }

  /** When this node answered a heartbeat last. */
  get answeredMs(): number | undefined {
    return this.#answeredMs;
  }

  get lastHeard(): Heard | undefined {
    return this.#heard;
  }

  /** The primary was restored from a backup, and this cluster has the state from before. */
  get missesRestore(): boolean {
    const state = this.state();
    const cursor = state && cursorOf(state);
    return cursor !== undefined && isBeforeRestore(cursor, this.#heard);
  }

  state(): ReplicationState | undefined {
    return this.#parts.role.isActive ? this.#parts.storage.machine.replication : undefined;
  }

  level(): FeatureLevel {
    return this.#parts.storage.machine.featureLevel;
  }

  digest({ index }: Cursor): bigint | undefined {
    return this.#parts.storage.machine.scopeDigestAt(index);
  }

  rootKey(key: Uint8Array): void {
    this.forgetKey();
    this.#rootKey = Buffer.from(key);
    key.fill(0);
  }

  forgetKey(): void {
    this.#rootKey?.fill(0);
    this.#rootKey = undefined;
  }

  async propose(step: ReplicationStep): Promise<Proposed> {
    const { log } = this.#parts;
    try {
      if (step.kind === 'swap') return await this.#swap(step);
      const completed = await this.#completed(step);
      if (completed === 'unknown') {
        log.warn("the primary's root key cannot be learned from its entries: this secondary asks for the whole state");
        this.wantsWholeState = true;
        return 'conflict';
      }
      return (await commitStep(this.#parts, completed)).outcome;
    } catch (error) {
      const isUsual = error instanceof StoreError;
      log[isUsual ? 'info' : 'error']({ step: step.kind, reason: reasonOf(error) }, 'a step of replication was not committed');
      // Any other fault of the state may be gone in the next one: a rekey of the primary may have come in between.
      return error instanceof BarrierError && error.code === 'seal_mismatch' ? 'unusable' : 'unknown';
    }
  }

  mayAnswer(): boolean {
    return !this.isPromoting && this.#parts.storage.holdsLease();
  }

  answered(nowMs: number): void {
    this.#answeredMs = nowMs;
  }

  counted(): void {
    this.#effects.counted();
  }

  receiving(epochs: readonly Epoch[]): void {
    this.#effects.diverged.receiving(epochs);
  }

  heard(position: ReportedPosition): void {
    this.#heard = { ...position, heardMs: this.#parts.nowMs() };
  }

  nodes(nodes: PrimaryNodes): void {
    this.#effects.keepNodes(nodes);
  }

  get successionKey(): Uint8Array | undefined {
    return this.#effects.succession.present;
  }

  unproven({ number }: EpochName): void {
    this.#parts.log.error(
      { epoch: number },
      'the former primary names a later epoch without a proof, and this cluster goes on serving: demote one of the two',
    );
  }

  async superseded(by: EpochName): Promise<void> {
    // A conflict: this cluster is no longer the primary of an older epoch, so there is nothing to end.
    await commitStep(this.#parts, { kind: 'supersede', by });
  }

  /** Adds the seal of this cluster to a rekey, if it has its own. `unknown`: the root key of the rekey is not known. */
  async #completed(step: ReplicationStep): Promise<ReplicationStep | 'unknown'> {
    if (step.kind === 'stage') {
      await this.#effects.diverged.staging(step);
      if (step.chunk === 0) this.#receiving = { attempt: step.attempt, core: new Map() };
      for (const { path, value } of step.records)
        if (transferredPaths.includes(path)) this.#receiving?.core.set(path, Buffer.from(value));
    }
    if (step.kind !== 'follow' || setSealOf(this.#localPrefixes) === 'shared') return step;
    const local = await this.#parts.barrier.transfer.ownSealFor(step.writes);
    return local === 'unknown' ? local : { ...step, local };
  }

  /** Puts a received state in place, with the local records encrypted under its keyring. */
  async #swap(step: Swap): Promise<Proposed> {
    const rootKey = this.#rootKey;
    const receiving = this.#receiving;
    if (rootKey === undefined || receiving?.attempt !== step.attempt)
      throw new Error('the primary has sent no root key for its state');
    this.#rootKey = undefined; // the next connection must not wipe it while it is in use
    try {
      await this.#effects.diverged.swapping();
      for (let attempt = 0; attempt < swapAttemptsMax; attempt++) {
        const { outcome } = await commitStep(this.#parts, await this.#completedSwap(step, { rootKey, records: receiving.core }));
        if (outcome === 'committed') this.wantsWholeState = false;
        if (outcome === 'committed' || !this.#isStaged(step)) return outcome;
        // A local record has changed since they were read.
      }
      return 'conflict';
    } finally {
      rootKey.fill(0);
      if (this.#receiving === receiving) this.#receiving = undefined;
    }
  }

  /** While the provider of the seal fails, waits for it: the state would have to be sent again as a whole. */
  async #completedSwap(step: Swap, foreign: ForeignKeys): Promise<Swap> {
    const { barrier, storage, log } = this.#parts;
    for (let hasWaited = false; ; hasWaited = true) {
      const localReadAt = storage.machine.applied.appliedIndex;
      try {
        return { ...step, local: await barrier.transfer.localRecords(this.#localPrefixes, foreign), localReadAt };
      } catch (error) {
        if (!(error instanceof ProviderError) || !this.#isStaged(step)) throw error;
        if (!hasWaited) log.warn({ reason: reasonOf(error) }, 'the received state waits for the provider of the seal');
        await delay(providerRetryMs, undefined, { ref: false });
      }
    }
  }

  /** Returns whether this node can still put the state in place: it is active, and no other state is being received. */
  #isStaged({ attempt }: Swap): boolean {
    return this.#receiving?.attempt === attempt && this.state()?.role === 'secondary';
  }

  get #localPrefixes(): readonly string[] {
    return this.#parts.storage.machine.replication?.local ?? [];
  }
}
