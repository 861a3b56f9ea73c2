import { setTimeout as delay } from 'node:timers/promises';
import { type Barrier, BarrierError, type ForeignKeys, ProviderError, transferredPaths } from '@transitd/barrier';
import type { Storage } from '@transitd/cluster';
import { type Clock, type Logger, reasonOf } from '@transitd/process';
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
import { PrimaryLink, type PrimaryLinkStatus } from '../port/primary-link.ts';
import { emptyRegistry } from '../registry/registry.ts';
import type { StoredRegistry } from '../registry/stored-registry.ts';
import { isBeforeRestore, type ReportedPosition } from '../roles/promotion.ts';
import type { Heard } from '../roles/promotion-control.ts';
import { setSealOf } from '../scope.ts';
import type { Proposed, SecondaryCluster } from '../sessions/session-ports.ts';
import type { PrimaryNodes } from '../stream/frame.ts';
import type { DivergedState } from './diverged-state.ts';
import type { StoredPrimaryCredential } from './primary-credential.ts';
import type { ReplicationRole } from './replication-role.ts';
import type { SuccessionKey } from './succession-key.ts';

interface SecondarySideOptions {
  readonly storage: Pick<Storage, 'machine' | 'holdsLease'>;
  readonly transfer: Barrier['transfer'];
  readonly diverged: Pick<DivergedState, 'receiving' | 'staging' | 'swapping'>;
  readonly succession: Pick<SuccessionKey, 'present'>;
  readonly credential: StoredPrimaryCredential;
  readonly registry: StoredRegistry;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How often the seal's provider is asked again for the seal of a received state. Its own back-off decides whether it is called. */
const providerRetryMs = 1_000;

/** How often local records may change while a received state is being put in place. */
const swapAttemptsMax = 8;

type Swap = ReplicationStep & { readonly kind: 'swap' };

/** The state of the primary as its secondary knows it. */
export interface PrimaryView extends PrimaryLinkStatus {
  /** Name of this cluster at the primary. */
  readonly secondary: string;
  readonly addresses: readonly string[];
  /** The primary was restored from a backup, and this cluster has the state from before. */
  readonly missesRestore: boolean;
}

/**
 * This node as the active node of a secondary, and its link to the primary, or to the former one. The link is open while the role of this
 * cluster requires it.
 */
export class SecondarySide implements SecondaryCluster {
  /** While true, heartbeats are not answered. */
  isPromoting = false;
  wantsWholeState = false;
  readonly #role: ReplicationRole;
  readonly #options: SecondarySideOptions;
  #link: PrimaryLink | undefined;
  /** The certificate with which the link connects; what the primary says there holds for this certificate only. */
  #certificate = '';
  #heard: Heard | undefined;
  #answeredMs: number | undefined;
  /** Resolves once it is stored that this cluster counts, if the primary has said so. */
  #counting = Promise.resolve();
  /** Whether that could not be stored: the next heartbeat tries again. */
  #mustStore = false;
  #rootKey: Uint8Array | undefined;
  /** The state that is being received, and its records that this cluster needs to open it, by path. */
  #receiving: { readonly attempt: string; readonly core: Map<string, Uint8Array> } | undefined;

  constructor(role: ReplicationRole, options: SecondarySideOptions) {
    this.#role = role;
    this.#options = options;
  }

  /** Opens the link, if this cluster has a credential. @throws StoreError */
  async openLink(): Promise<void> {
    if (this.#link !== undefined) return;
    const { credential, clock, log } = this.#options;
    const issued = await credential.read();
    if (issued === undefined) return;
    this.#certificate = issued.certificate;
    this.#mustStore = false;
    const credentials = {
      get present() {
        return credential.present?.certificate === issued.certificate ? credential.present : issued;
      },
    };
    this.#link = new PrimaryLink({ credentials, cluster: this, clock, log });
  }

  closeLink(): void {
    this.#link?.close();
    this.#link = undefined;
  }

  /** Undefined while the link is closed. */
  get linkStatus(): PrimaryLinkStatus | undefined {
    return this.#link?.status();
  }

  /** The primary of this secondary; undefined while the link is closed, as it is on any node but the active one. */
  get primary(): PrimaryView | undefined {
    const { present } = this.#options.credential;
    const { linkStatus, missesRestore } = this;
    if (linkStatus === undefined || present === undefined || this.#role.state?.role !== 'secondary') return undefined;
    const { secondary, addresses } = present;
    return { secondary, addresses, missesRestore, ...linkStatus };
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
    return this.#role.activeState;
  }

  level(): FeatureLevel {
    return this.#options.storage.machine.featureLevel;
  }

  digest({ index }: Cursor): bigint | undefined {
    return this.#options.storage.machine.scopeDigestAt(index);
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
    const { log } = this.#options;
    try {
      if (step.kind === 'swap') return await this.#swap(step);
      const completed = await this.#completed(step);
      if (completed === 'unknown') {
        log.warn("the primary's root key cannot be learned from its entries: this secondary asks for the whole state");
        this.wantsWholeState = true;
        return 'conflict';
      }
      return await this.#role.commit(completed);
    } catch (error) {
      const isUsual = error instanceof StoreError;
      log[isUsual ? 'info' : 'error']({ step: step.kind, reason: reasonOf(error) }, 'a step of replication was not committed');
      // Any other fault of the state may be gone in the next one: a rekey of the primary may have come in between.
      return error instanceof BarrierError && error.code === 'seal_mismatch' ? 'unusable' : 'unknown';
    }
  }

  mayAnswer(): boolean {
    return !this.isPromoting && this.#options.storage.holdsLease();
  }

  answered(nowMs: number): void {
    this.#answeredMs = nowMs;
  }

  counted(): void {
    this.#counting = this.#keepCounted();
  }

  /** Returns whether this cluster counts at its present primary; also on a node that has not heard that one. @throws StoreError */
  async isCounted(): Promise<boolean> {
    await this.#counting; // a handover may be asked for at once
    return (await this.#options.credential.read())?.isCounted === true;
  }

  receiving(epochs: readonly Epoch[]): void {
    this.#options.diverged.receiving(epochs);
  }

  heard(position: ReportedPosition): void {
    this.#heard = { ...position, heardMs: this.#options.clock.nowMs() };
    if (this.#mustStore) this.counted();
  }

  nodes(nodes: PrimaryNodes): void {
    void this.#options.credential.keepNodes(this.#certificate, nodes);
  }

  get successionKey(): Uint8Array | undefined {
    return this.#options.succession.present;
  }

  unproven({ number }: EpochName): void {
    this.#options.log.error(
      { epoch: number },
      'the former primary names a later epoch without a proof, and this cluster goes on serving: demote one of the two',
    );
  }

  async superseded(by: EpochName): Promise<void> {
    // A conflict: this cluster is no longer the primary of an older epoch, so there is nothing to end.
    await this.#role.commit({ kind: 'supersede', by });
  }

  /** Adds the seal of this cluster to a rekey, if it has its own. `unknown`: the root key of the rekey is not known. */
  async #completed(step: ReplicationStep): Promise<ReplicationStep | 'unknown'> {
    if (step.kind === 'stage') {
      await this.#options.diverged.staging(step);
      if (step.chunk === 0) this.#receiving = { attempt: step.attempt, core: new Map() };
      for (const { path, value } of step.records)
        if (transferredPaths.includes(path)) this.#receiving?.core.set(path, Buffer.from(value));
    }
    if (step.kind !== 'follow' || setSealOf(this.#localPrefixes) === 'shared') return step;
    const local = await this.#options.transfer.ownSealFor(step.writes);
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
      await this.#options.diverged.swapping();
      for (let attempt = 0; attempt < swapAttemptsMax; attempt++) {
        const outcome = await this.#role.commit(await this.#completedSwap(step, { rootKey, records: receiving.core }));
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
    const { transfer, storage, log } = this.#options;
    for (let hasWaited = false; ; hasWaited = true) {
      const localReadAt = storage.machine.applied.appliedIndex;
      try {
        return { ...step, local: await transfer.localRecords(this.#localPrefixes, foreign), localReadAt };
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

  /**
   * Stores that this cluster counts at its present primary. From now on, the secondaries that this cluster had as a primary no longer
   * count.
   */
  async #keepCounted(): Promise<void> {
    const certificate = this.#certificate;
    const { credential, registry, log } = this.#options;
    if (credential.present?.certificate === certificate && credential.present.isCounted === true) return;
    this.#mustStore = false;
    try {
      await forgetSecondaries(registry, this.#role); // first: once the credential says so, this is not done again
      await credential.keepCounted(certificate);
    } catch (error) {
      this.#mustStore = certificate === this.#certificate;
      log.warn({ reason: reasonOf(error) }, 'could not store that the primary counts this secondary; retrying');
    }
  }

  get #localPrefixes(): readonly string[] {
    return this.#role.state?.local ?? [];
  }
}

/** Forgets the secondaries of a former time as a primary. A cluster that has become the primary meanwhile keeps its new ones. */
export async function forgetSecondaries(registry: StoredRegistry, role: ReplicationRole): Promise<void> {
  await registry.change((present) =>
    present.registrations.length === 0 || role.state?.role === 'primary' ? present : emptyRegistry,
  );
}
