import { BarrierError } from '@transitd/barrier';
import { reasonOf } from '@transitd/process';
import { localPrefixes, type PrimaryNodes, type Proposed, type SecondaryCluster } from '@transitd/replication';
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
    try {
      const { outcome } = await commitStep(this.#parts, await this.#completed(step));
      if (step.kind === 'swap' && outcome === 'committed') this.wantsWholeState = false;
      return outcome;
    } catch (error) {
      const { log } = this.#parts;
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
    await commitStep(this.#parts, { kind: 'supersede', by });
  }

  /** Adds the local records to a swap, encrypted under the keyring of the state that it makes live. */
  async #completed(step: ReplicationStep): Promise<ReplicationStep> {
    if (step.kind === 'stage') {
      await this.#effects.diverged.staging(step);
      if (step.chunk === 0) this.#core.clear();
      for (const { path, value } of step.records) if (keyPaths.includes(path)) this.#core.set(path, Buffer.from(value));
    }
    if (step.kind !== 'swap') return step;
    if (this.#rootKey === undefined) throw new Error('the primary has sent no root key for its state');
    await this.#effects.diverged.swapping();
    const [keyring, seal] = keyPaths.map((path) => this.#core.get(path));
    try {
      const foreign = { rootKey: this.#rootKey, keyring, seal };
      return { ...step, local: await this.#parts.barrier.transfer.localRecords(localPrefixes, foreign) };
    } finally {
      this.forgetKey();
    }
  }
}

const keyPaths: readonly string[] = ['core/keyring', 'core/seal'];
