import {
  type Barrier,
  BarrierError,
  idOf,
  type ProviderHealth,
  type SealConfig,
  type SealStatus,
  sealTypesOf,
} from '@transitd/barrier';
import { type Logger, LogLimit } from '@transitd/process';
import type { MonitoredSeal } from '@transitd/seals';
import { StoreError, takesPart } from '@transitd/storage-fsm';
import type { JoinAttempts } from './join/join-attempts.ts';
import { ShareRetention, sharesRetained } from './join/share-retention.ts';
import { type NodeMember, removedText } from './member.ts';
import type { ServiceLoader } from './service-loader.ts';
import { UnsealRetry } from './unseal-retry.ts';

export interface NodeSealParts {
  readonly seal: SealConfig;
  /** The providers of the configured seals. */
  readonly providers: readonly MonitoredSeal[];
  readonly log: Logger;
  readonly clusterMember: NodeMember;
  readonly joinAttempts: JoinAttempts;
  readonly serviceLoader: ServiceLoader;
}

/** The seal of a node: opens it by shares, by a static key or by a provider, closes it, and protects the shares that were given. */
export class NodeSeal {
  readonly #parts: NodeSealParts;
  readonly #retention = new ShareRetention(() => performance.now());
  /** An operator sealed this node, so it does not unseal itself before its next start. */
  #sealedByOperator = false;
  readonly #logLimit: LogLimit;
  readonly #retry = new UnsealRetry({ nowMs: () => performance.now(), utcMs: () => Date.now(), random: () => Math.random() });
  /** The unseal in progress. A slow provider must not be asked again meanwhile. */
  #unsealing: Promise<void> | undefined;
  #reopeningSinceMs: number | undefined;

  constructor(parts: NodeSealParts) {
    this.#parts = parts;
    this.#logLimit = new LogLimit({ log: parts.log, nowMs: () => performance.now() });
  }

  /** The health of the present seal's provider; undefined if the seal has none. */
  get providerHealth(): ProviderHealth | undefined {
    return this.#provider && ((this.status.sealed ? this.#retry.health : undefined) ?? this.#provider.health);
  }

  get #provider(): MonitoredSeal | undefined {
    const { type, name } = this.status;
    return this.#parts.providers.find((provider) => provider.type === type && provider.name === name);
  }

  get status(): SealStatus {
    const { clusterMember, joinAttempts, seal } = this.#parts;
    return clusterMember.store?.barrier.sealStatus ?? joinAttempts.sealStatus ?? sealWithoutRecords(seal);
  }

  /** Accepts a share; with the last one it resolves when the services are loaded. @throws BarrierError, ClusterError, StoreError */
  async unseal(share: Uint8Array): Promise<SealStatus> {
    const { clusterMember, joinAttempts, serviceLoader } = this.#parts;
    if (clusterMember.removed) throw new StoreError('sealed', removedText);
    if (clusterMember.store === undefined && (await joinAttempts.addShare(share))) {
      this.#retention.shareAccepted();
      return this.status;
    }
    const { barrier } = clusterMember.requireStore();
    const wasSealed = barrier.state.sealed;
    const status = await barrier.unseal(share);
    // A caller without a token may send anything here, so only shares that opened the seal end what an operator began.
    if (wasSealed && !status.sealed) this.#sealedByOperator = false;
    if (status.sealed) this.#retention.shareAccepted(); // an unsealed barrier ignores the share
    await serviceLoader.loaded;
    return this.status;
  }

  /**
   * Accepts a share that authorizes the migration of the seal. With the last one, a node that is sealed by shares unseals, and the active
   * node replaces the seal.
   * @returns the status, and in `waits` why the seal is not replaced yet
   * @throws BarrierError, ProviderError, StoreError
   */
  async migrate(share: Uint8Array): Promise<{ readonly status: SealStatus; readonly waits?: string }> {
    const { clusterMember, serviceLoader } = this.#parts;
    if (clusterMember.removed) throw new StoreError('sealed', removedText);
    if (clusterMember.store === undefined)
      throw new BarrierError(
        'seal_mismatch',
        'this node has not joined yet, so it has no seal to migrate: give the share without migrate',
      );
    if (takesPart(clusterMember.engine?.replication))
      throw new BarrierError(
        'seal_mismatch',
        'the seal of a cluster in a replication set cannot be changed: disable replication before a migration',
      );
    const status = await clusterMember.store.barrier.migrate(share);
    if (status.progress > 0) {
      if (status.sealed) this.#retention.shareAccepted();
      return { status };
    }
    this.#sealedByOperator = false;
    await serviceLoader.loaded;
    return { status: this.status, ...(this.status.migration && { waits: migrationWaits }) };
  }

  /**
   * Discards the shares given so far, unless the newest of them is too recent. Recent shares are protected because the caller needs no
   * token.
   * @param from - address of the caller
   * @returns the status, and in `ignored` why the shares were kept
   * @throws BarrierError `unsealed`; RateLimited
   */
  reset(from: string): { readonly status: SealStatus; readonly ignored?: string } {
    if (this.status.progress > 0) {
      if (this.#retention.remainingMs > 0) return { status: this.status, ignored: sharesRetained };
      this.#retention.admitDiscard(from);
    }
    this.#parts.joinAttempts.reset();
    return { status: this.#parts.clusterMember.store?.barrier.resetUnseal() ?? this.status };
  }

  /** Admits a request that discards the shares given so far, if there are any. @throws RateLimited */
  admitDiscard(from: string): void {
    if (this.status.progress > 0) this.#retention.admitDiscard(from);
  }

  /** For how long this node has been opening by itself a state that replaced its own; undefined if it is not doing so. */
  get reopeningForMs(): number | undefined {
    const sinceMs = this.#sealedByOperator ? undefined : this.#reopeningSinceMs;
    return sinceMs && performance.now() - sinceMs;
  }

  /** Unseals this barrier at once when it has sealed itself, because a state with another keyring has replaced that of this node. */
  follow(barrier: Barrier): void {
    barrier.onStateChange(({ sealed, reason }) => {
      if (sealed && reason !== undefined) void this.#reopen();
    });
  }

  async #reopen(): Promise<void> {
    if (this.#unsealing !== undefined) return;
    const attempt = this.retryAutoUnseal();
    if (this.#unsealing === undefined) return; // the seal needs shares, or an operator has sealed this node
    this.#reopeningSinceMs = performance.now();
    await attempt;
    this.#reopeningSinceMs = undefined;
    this.#parts.clusterMember.updateFitness();
  }

  /** Drops every key. The node stays sealed until an operator unseals it or it restarts. */
  seal(): void {
    const { clusterMember } = this.#parts;
    clusterMember.store?.barrier.seal();
    clusterMember.updateFitness(); // it may have been sealed already, and reopening
  }

  /** From now on the node does not unseal itself before its next start. */
  keepSealed(): void {
    this.#sealedByOperator = true;
  }

  /**
   * Opens the seal at the start of the node. A static key that does not fit ends the start: the node would stay sealed forever. A provider
   * may be away, so the node starts sealed and tries it in the background.
   * @throws BarrierError
   */
  async unsealAtStart(): Promise<void> {
    const { clusterMember, seal } = this.#parts;
    const { barrier } = clusterMember.requireStore();
    const { type } = barrier.sealStatus;
    if (!barrier.state.initialized || (type === 'shamir' && sealTypesOf(seal).includes('shamir'))) return;
    if (this.#provider === undefined) await this.#autoUnseal();
    else void this.retryAutoUnseal();
  }

  async #autoUnseal(): Promise<void> {
    const { clusterMember, serviceLoader } = this.#parts;
    await clusterMember.requireStore().barrier.autoUnseal();
    const failure = await serviceLoader.loaded;
    if (failure === undefined) this.#retry.succeeded();
    else this.#retry.notLoaded(failure.error);
  }

  /** Keeps the provider's access valid and its health known; called every second. */
  async tick(): Promise<void> {
    this.#parts.clusterMember.store?.barrier.expireMigration();
    await Promise.all([...this.#parts.providers.map((provider) => provider.tick()), this.retryAutoUnseal()]);
  }

  /** Tries again to open a seal that needs no shares, unless an operator sealed the node; never rejects. */
  async retryAutoUnseal(): Promise<void> {
    const { clusterMember } = this.#parts;
    const { initialized = false, sealed = false } = clusterMember.store?.barrier.state ?? {};
    const mayUnseal = !clusterMember.removed && !this.#sealedByOperator && this.status.type !== 'shamir';
    if (!initialized || !sealed || !mayUnseal || this.#unsealing !== undefined || !this.#retry.isDue) return;
    this.#unsealing = this.#autoUnseal().catch((error: unknown) => {
      this.#retry.failed(error);
      this.#logSealed(error);
    });
    await this.#unsealing;
    this.#unsealing = undefined;
  }

  #logSealed(error: unknown): void {
    const { type } = this.status;
    const [reason, message] = [
      (error as Error).message,
      `this node is sealed and could not unseal itself with its ${type} seal; it tries again with growing delays`,
    ];
    this.#logLimit.write('warn', 'unseal', { reason }, message);
  }
}

const migrationWaits =
  'enough shares were given: this node replaces the seal if it becomes the active node within 10 minutes; otherwise give the shares to the active node';

/** The seal of a node that has no records. */
const sealWithoutRecords = (seal: SealConfig): SealStatus => ({
  ...idOf(seal),
  initialized: false,
  sealed: true,
  t: 0,
  n: 0,
  progress: 0,
  nonce: '',
  recoverySeal: seal.type !== 'shamir',
  migration: false,
});
