import { type SealStatus, type SealTerms, ShareCollection } from '@transitd/barrier';

/**
 * A node with a shamir seal between the request to join and the join: it gathers shares against the terms that the leader told. Whether
 * the leader told the truth shows later, when the key of the shares opens what it wrapped, or not; the shares stay here in any case.
 */
export class PendingJoin {
  readonly terms: SealTerms;
  #shares: ShareCollection;

  constructor(terms: SealTerms) {
    this.terms = terms;
    this.#shares = this.#none();
  }

  get sealStatus(): SealStatus {
    const { type, threshold, shares } = this.terms;
    const progress = this.#shares.progress;
    const nonce = progress === 0 ? '' : this.#shares.nonce;
    return { type, initialized: false, sealed: true, t: threshold, n: shares, progress, nonce, recoverySeal: false };
  }

  /** Takes a share; one that is in already counts once. True when there are enough. @throws BarrierError `invalid_share`, and nothing changes */
  addShare(share: Uint8Array): boolean {
    this.#shares.add(share);
    return this.#shares.complete;
  }

  /** For `JoinClient.complete`, and then for the barrier of the new member. They are wiped by `reset`. */
  get shares(): ShareCollection {
    return this.#shares;
  }

  /** Wipes the shares given so far. */
  reset(): void {
    this.#shares.wipe();
    this.#shares = this.#none();
  }

  #none(): ShareCollection {
    return new ShareCollection(this.terms.threshold, this.terms.shareHashes);
  }
}
