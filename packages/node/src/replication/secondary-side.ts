import { BarrierError, transferredPaths } from '@transitd/barrier';
import { reasonOf } from '@transitd/process';
import { type PrimaryNodes, type Proposed, type SecondaryCluster, setSealOf } from '@transitd/replication';
import {
  type Cursor,
  type Epoch,
  type EpochName,
  type FeatureLevel,
  type ReplicationState,
  type ReplicationStep,
  StoreError,
} from '@transitd/storage-fsm';
import type { DivergedState } from './diverged-state.ts';
import { commitStep, type ReplicationParts } from './replication-parts.ts';

/** The newest heartbeat of the primary. */
export interface Heard {
  readonly at: Cursor;
  readonly demoted: boolean;
  readonly heardMs: number;
}

export interface SecondaryEffects {
  /** Stores where the primary's nodes are. */
  keepNodes(nodes: PrimaryNodes): void;
  /** Stores that the primary counts this secondary. */
  counted(): void;
  readonly diverged: Pick<DivergedState, 'receiving' | 'staging' | 'swapping'>;
}

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
  /** Records of the state that is being received, by path. */
  readonly #core = new Map<string, Uint8Array>();

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

  state(): ReplicationState | undefined {
    return this.#parts.isActive() ? this.#parts.storage.machine.replication : undefined;
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
      const completed = await this.#completed(step);
      if (completed === 'unknown') {
        log.warn("the primary's root key cannot be learned from its entries: this secondary asks for the whole state");
        this.wantsWholeState = true;
        return 'conflict';
      }
      const { outcome } = await commitStep(this.#parts, completed);
      if (step.kind === 'swap' && outcome === 'committed') this.wantsWholeState = false;
      return outcome;
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

  heard({ at, demoted }: { readonly at: Cursor; readonly demoted: boolean }): void {
    this.#heard = { at, demoted, heardMs: this.#parts.nowMs() };
  }

  nodes(nodes: PrimaryNodes): void {
    this.#effects.keepNodes(nodes);
  }

  async superseded(by: EpochName): Promise<void> {
    // A conflict: this cluster is no longer the primary of an older epoch, so there is nothing to end.
    await commitStep(this.#parts, { kind: 'supersede', by });
  }

  /**
   * Adds the local records that must change with a step: to a swap all of them, encrypted under the keyring of the state that it makes
   * live, and to a rekey the seal of this cluster, if it has its own. `unknown`: the root key of the rekey is not known.
   */
  async #completed(step: ReplicationStep): Promise<ReplicationStep | 'unknown'> {
    if (step.kind === 'stage') {
      await this.#effects.diverged.staging(step);
      if (step.chunk === 0) this.#core.clear();
      for (const { path, value } of step.records) if (transferredPaths.includes(path)) this.#core.set(path, Buffer.from(value));
    }
    if (step.kind === 'swap') return this.#completedSwap(step);
    if (step.kind !== 'follow' || setSealOf(this.#localPrefixes) === 'shared') return step;
    const local = await this.#parts.barrier.transfer.ownSealFor(step.writes);
    return local === 'unknown' ? local : { ...step, local };
  }

  async #completedSwap(step: ReplicationStep & { readonly kind: 'swap' }): Promise<ReplicationStep> {
    const rootKey = this.#rootKey;
    if (rootKey === undefined) throw new Error('the primary has sent no root key for its state');
    this.#rootKey = undefined; // the next connection must not wipe it while it is in use
    try {
      await this.#effects.diverged.swapping();
      const foreign = { rootKey, records: this.#core };
      return { ...step, local: await this.#parts.barrier.transfer.localRecords(this.#localPrefixes, foreign) };
    } finally {
      rootKey.fill(0);
    }
  }

  get #localPrefixes(): readonly string[] {
    return this.#parts.storage.machine.replication?.local ?? [];
  }
}
