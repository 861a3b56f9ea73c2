import type { SealConfig, SealStatus, SealType } from '@transitd/barrier';
import type { Logger } from '@transitd/process';
import { StoreError } from '@transitd/storage-fsm';
import { type ClusterMember, removedText } from './cluster-member.ts';
import type { JoinAttempts } from './join/join-attempts.ts';
import { ShareRetention, sharesRetained } from './join/share-retention.ts';
import type { ServiceLoader } from './service-loader.ts';

export interface NodeSealParts {
  readonly seal: SealConfig;
  readonly log: Logger;
  readonly clusterMember: ClusterMember;
  readonly joinAttempts: JoinAttempts;
  readonly serviceLoader: ServiceLoader;
}

/** The seal of a node: opens it by shares or by a static key, closes it, and protects the shares that were given. */
export class NodeSeal {
  readonly #parts: NodeSealParts;
  readonly #retention = new ShareRetention(() => performance.now());
  /** An operator sealed this node, so it does not unseal itself before its next start. */
  #sealedByOperator = false;

  constructor(parts: NodeSealParts) {
    this.#parts = parts;
  }

  get status(): SealStatus {
    const { clusterMember, joinAttempts, seal } = this.#parts;
    return clusterMember.store?.barrier.sealStatus ?? joinAttempts.sealStatus ?? sealWithoutRecords(seal.type);
  }

  /** Accepts a share; with the last one it resolves when the services are loaded. @throws BarrierError, JoinError, StoreError */
  async unseal(share: Uint8Array): Promise<SealStatus> {
    const { clusterMember, joinAttempts, serviceLoader } = this.#parts;
    if (clusterMember.removed) throw new StoreError('sealed', removedText);
    if (clusterMember.store === undefined && (await joinAttempts.addShare(share))) {
      this.#retention.shareAccepted();
      return this.status;
    }
    this.#sealedByOperator = false;
    const status = await clusterMember.requireStore().barrier.unseal(share);
    if (status.sealed) this.#retention.shareAccepted(); // an unsealed barrier ignores the share
    await serviceLoader.loaded;
    return { ...status, ...this.status };
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

  /** Drops every key. The node stays sealed until an operator unseals it or it restarts. */
  seal(): void {
    this.#parts.clusterMember.store?.barrier.seal();
  }

  /** From now on the node does not unseal itself before its next start. */
  keepSealed(): void {
    this.#sealedByOperator = true;
  }

  /**
   * Opens a static seal. If the configured seal and the stored one are not of the same type, that is an error: the node would stay sealed
   * forever.
   */
  async autoUnseal(): Promise<void> {
    const { clusterMember, seal, serviceLoader } = this.#parts;
    const { barrier } = clusterMember.requireStore();
    const isStatic = seal.type === 'static' || barrier.sealStatus.type === 'static';
    if (!barrier.state.initialized || !isStatic) return;
    await barrier.autoUnseal();
    await serviceLoader.loaded;
  }

  /** Tries again to open a static seal, unless an operator sealed the node. */
  async retryAutoUnseal(): Promise<void> {
    const { clusterMember, seal, log } = this.#parts;
    const { initialized = false, sealed = false } = clusterMember.store?.barrier.state ?? {};
    const mayUnseal = !clusterMember.removed && !this.#sealedByOperator && seal.type === 'static';
    if (!initialized || !sealed || !mayUnseal) return;
    await this.autoUnseal().catch((error: Error) =>
      log.warn(
        { reason: error.message },
        'this node is sealed and could not unseal itself with its static seal key; it retries every second',
      ),
    );
  }
}

/** The seal of a node that has no records. */
const sealWithoutRecords = (type: SealType): SealStatus => ({
  type,
  initialized: false,
  sealed: true,
  t: 0,
  n: 0,
  progress: 0,
  nonce: '',
  recoverySeal: type === 'static',
});
