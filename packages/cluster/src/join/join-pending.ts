import { type SealStatus, type SealTerms, ShareCollection } from '@transitd/barrier';

/**
 * A node that has asked to join a cluster with a Shamir seal, and collects shares by the terms that the leader reported. Whether the terms
 * are true is known only later: the key from the shares opens the wrapped secret only if the terms are true. The shares never leave this
 * node.
 */
export class PendingJoin {
  readonly terms: SealTerms;
  #shares: ShareCollection;

  constructor(terms: SealTerms) {
    this.terms = terms;
    this.#shares = this.#emptyCollection();
  }

  get sealStatus(): SealStatus {
    const { type, threshold, shares } = this.terms;
    const progress = this.#shares.progress;
    const nonce = progress === 0 ? '' : this.#shares.nonce;
    return {
      type,
      initialized: false,
      sealed: true,
      t: threshold,
      n: shares,
      progress,
      nonce,
      recoverySeal: false,
      migration: false,
    };
  }

  /**
   * Adds a share; a share that is given twice counts once. Returns whether there are enough shares.
   * @throws BarrierError `invalid_share`, and nothing changes
   */
  addShare(share: Uint8Array): boolean {
    this.#shares.add(share);
    return this.#shares.complete;
  }

  /** The shares, for `JoinClient.complete` and then for the barrier of the new member; `reset` wipes them. */
  get shares(): ShareCollection {
    return this.#shares;
  }

  /** Wipes the shares given so far. */
  reset(): void {
    this.#shares.wipe();
    this.#shares = this.#emptyCollection();
  }

  #emptyCollection(): ShareCollection {
    return new ShareCollection(this.terms.threshold, this.terms.shareHashes);
  }
}
