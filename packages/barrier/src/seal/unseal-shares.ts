import { isSameSealRecord, type StoredSeal } from './core-records.ts';
import { ShareCollection } from './shares.ts';

/** The shares that operators have provided to unseal. They belong to one seal. */
export class UnsealShares {
  #collected: { readonly shares: ShareCollection; readonly seal: StoredSeal } | undefined;

  /** Number of different shares. */
  get progress(): number {
    return this.#collected?.shares.progress ?? 0;
  }

  /** Identifies the attempt to unseal; empty before its first share. */
  get nonce(): string {
    return this.#collected?.shares.nonce ?? '';
  }

  /**
   * Adds a share of this seal, after dropping the shares of an earlier one.
   * @returns all shares so far
   * @throws BarrierError `invalid_share`
   */
  add(seal: StoredSeal, share: Uint8Array): ShareCollection {
    if (!isSameSealRecord(this.#collected?.seal, seal)) this.drop();
    const { threshold, shareHashes } = seal.record;
    const shares = this.#collected?.shares ?? new ShareCollection(threshold, shareHashes);
    shares.add(share);
    this.#collected = { shares, seal };
    return shares;
  }

  /** Wipes the shares. */
  drop(): void {
    this.#collected?.shares.wipe();
    this.#collected = undefined;
  }
}
