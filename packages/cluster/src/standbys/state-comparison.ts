import type { LogIndex } from '@transitd/raft-core';
import type { ClusterHost } from '../ports/cluster-host.ts';
import type { Storage } from '../ports/storage-port.ts';

/** The state digest after one entry: a hash over all records. */
interface StateDigest {
  readonly index: LogIndex;
  /** Hex. */
  readonly digest: string;
}

export const hexOf = (digest: bigint): string => digest.toString(16).padStart(64, '0');

/**
 * Compares this node's records with the active node's by their state digests at one index. After a start this node serves nothing from its
 * records until a comparison succeeds: a store can lose records without an error, and an attacker with access to the disk can
 * put older records back.
 */
export class StateComparison {
  readonly #storage: Pick<Storage, 'machine' | 'replica'>;
  readonly #host: Pick<ClusterHost, 'log' | 'events'>;
  #pending: StateDigest | undefined;
  #verdict: 'unknown' | 'same' | 'different' = 'unknown';

  constructor(storage: Pick<Storage, 'machine' | 'replica'>, host: Pick<ClusterHost, 'log' | 'events'>) {
    this.#storage = storage;
    this.#host = host;
  }

  /** Compares a digest of the active node as soon as its index is applied here. */
  compareWith(digest: StateDigest): void {
    // A pending digest is compared first: under load a newer one would always be ahead of the applied index.
    if (this.#pending === undefined || this.#appliedIndex >= this.#pending.index) {
      this.#compare();
      this.#pending = digest;
    }
    this.#compare();
  }

  get verdict(): 'unknown' | 'same' | 'different' {
    this.#compare();
    return this.#verdict;
  }

  #compare(): void {
    const pending = this.#pending;
    if (pending === undefined || this.#verdict === 'different' || this.#appliedIndex < pending.index) return;
    const local = this.#storage.machine.digestAt(pending.index);
    this.#pending = undefined;
    if (local === undefined) return;
    this.#verdict = hexOf(local) === pending.digest ? 'same' : 'different';
    if (this.#verdict === 'different') this.#report(pending.index);
  }

  /** Called once. */
  #report(index: LogIndex): void {
    this.#host.log.error(
      { index },
      "state digest mismatch: this node's records differ from the active node's at this index, so it serves nothing. Replace it, or restart it to compare again",
    );
    this.#host.events.emit('digestDiffers', { index });
  }

  get #appliedIndex(): LogIndex {
    return this.#storage.replica.status().appliedIndex;
  }
}
