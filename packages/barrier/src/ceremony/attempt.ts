import { StoreError } from '@transitd/storage-fsm';
import { BarrierError } from '../records/errors.ts';
import { isSameSealRecord } from '../seal/core-records.ts';
import type { SealKeeper } from '../seal/seal-keeper.ts';
import type { SealRecord } from '../seal/seal-record.ts';
import { ShareCollection } from '../seal/shares.ts';

export interface GivenShare {
  readonly nonce: string;
  readonly share: Uint8Array;
}

/** An attempt in progress: its purpose, and the collected shares of the seal that was current when the attempt began. */
export type OngoingAttempt<Purpose extends object> = Purpose & {
  readonly record: SealRecord;
  readonly revision: number;
  /** The shares of the step in progress; their nonce identifies the step. */
  shares: ShareCollection;
};

/** The names of an attempt in error messages and codes. */
export interface AttemptLabels {
  readonly name: string;
  readonly step: string;
  /** Prefix of the error codes. */
  readonly code: 'rekey' | 'root_generation';
}

export interface AttemptParts<Purpose extends object> {
  readonly seal: SealKeeper;
  readonly exclusive: <T>(task: () => Promise<T>) => Promise<T>;
  readonly labels: AttemptLabels;
  /** Wipes the secrets that an attempt's `purpose` contains, such as new keys or a pad. */
  readonly wipe: (purpose: Purpose) => void;
}

/**
 * An operation that enough holders of the seal's shares must authorize. There is at most one attempt at a time, in this node's memory
 * only. It ends when it succeeds, when it is canceled, when the node is sealed or loses leadership, and when the process ends.
 */
export class Attempt<Purpose extends object> {
  readonly #parts: AttemptParts<Purpose>;
  #ongoing: OngoingAttempt<Purpose> | undefined;

  constructor(parts: AttemptParts<Purpose>) {
    this.#parts = parts;
  }

  /** The attempt in progress; undefined between attempts. */
  get ongoing(): OngoingAttempt<Purpose> | undefined {
    return this.#ongoing;
  }

  /**
   * Starts an attempt.
   * @param mayReplace - returns whether the new attempt may end the one in progress; by default it may not
   * @throws BarrierError `…_in_progress`; errors of `purpose`
   */
  start(purpose: () => Purpose, mayReplace?: (present: OngoingAttempt<Purpose>) => boolean): Promise<OngoingAttempt<Purpose>> {
    const { seal, exclusive, labels, wipe } = this.#parts;
    return exclusive(async () => {
      if (this.#ongoing !== undefined && mayReplace?.(this.#ongoing) === true) this.drop();
      if (this.#ongoing !== undefined) throw new BarrierError(`${labels.code}_in_progress`, `${labels.name} already in progress`);
      const newPurpose = purpose();
      const { record, revision } = await seal.current().catch((error: unknown) => {
        wipe(newPurpose);
        throw error;
      });
      this.#ongoing = { ...newPurpose, record, revision, shares: new ShareCollection(record.threshold, record.shareHashes) };
      return this.#ongoing;
    });
  }

  /** Runs one step of the attempt in progress; no other step runs meanwhile. @throws BarrierError `…_not_started` */
  step<T>(task: (ongoing: OngoingAttempt<Purpose>) => Promise<T>): Promise<T> {
    const { exclusive, labels } = this.#parts;
    return exclusive(async () => {
      if (this.#ongoing === undefined) throw new BarrierError(`${labels.code}_not_started`, `no ${labels.name} in progress`);
      return task(this.#ongoing);
    });
  }

  /**
   * Adds a share of the current seal.
   * @returns whether enough holders have authorized the attempt; the combined key has then been verified
   * @throws BarrierError `…_nonce`, `invalid_share`, `conflict`, `barrier_corrupt`, `seal_mismatch`; StoreError `sealed`
   */
  async addShare(ongoing: OngoingAttempt<Purpose>, { nonce, share }: GivenShare): Promise<boolean> {
    const { seal } = this.#parts;
    this.requireNonce(ongoing, nonce);
    if (!isSameSealRecord(await seal.current(), ongoing)) throw this.sealChanged();
    this.requireRunning(ongoing);
    ongoing.shares.add(share);
    if (!ongoing.shares.complete) return false;
    await seal.verifyShares(ongoing, ongoing.shares);
    this.requireRunning(ongoing);
    return true;
  }

  /**
   * Checks a step's nonce. All participants know the nonce, so the comparison need not take constant time.
   * @throws BarrierError `…_nonce`
   */
  requireNonce({ shares }: OngoingAttempt<Purpose>, nonce: string): void {
    const { code, step } = this.#parts.labels;
    if (shares.nonce !== nonce) throw new BarrierError(`${code}_nonce`, `incorrect nonce for this ${step}`);
  }

  /** Checks that the attempt was not dropped during a step because the node was sealed or lost leadership. @throws StoreError `sealed` */
  requireRunning(ongoing: OngoingAttempt<Purpose>): void {
    const { name } = this.#parts.labels;
    if (this.#ongoing !== ongoing)
      throw new StoreError('sealed', `the ${name} has ended: this node was sealed or is no longer the leader`);
  }

  /** Drops the attempt after the seal was replaced or rewrapped: the shares collected here are of an old seal. */
  sealChanged(): BarrierError {
    this.drop();
    return new BarrierError('conflict', `the seal has changed; start the ${this.#parts.labels.name} again`);
  }

  /** Ends the attempt in progress, if any, for a caller who knows its nonce or is privileged. @throws BarrierError `…_nonce` */
  cancel(by: { readonly nonce: string } | 'privileged'): Promise<void> {
    return this.#parts.exclusive(async () => {
      if (this.#ongoing === undefined) return;
      if (by !== 'privileged') this.requireNonce(this.#ongoing, by.nonce);
      this.drop();
    });
  }

  /** Ends the attempt in progress, if any, and wipes its secrets, synchronously. */
  drop(): void {
    const ongoing = this.#ongoing;
    this.#ongoing = undefined;
    if (ongoing === undefined) return;
    ongoing.shares.wipe();
    this.#parts.wipe(ongoing);
  }
}
