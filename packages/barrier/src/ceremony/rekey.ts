import { timingSafeEqual } from 'node:crypto';
import { StoreError } from '@transitd/storage-fsm';
import { BarrierError } from '../records/errors.ts';
import { checkCounts, type ShareCounts } from '../seal/seal-config.ts';
import type { SealKeeper } from '../seal/seal-keeper.ts';
import { hashShare, newSharedKey, ShareCollection, type SharedKey } from '../seal/shares.ts';
import { Attempt, type AttemptLabels, type AttemptParts, type GivenShare, type OngoingAttempt } from './attempt.ts';

export interface RekeyRequest extends ShareCounts {
  /** The new shares take effect only after enough of them were submitted back, so that none can be lost in transit. */
  readonly requireVerification: boolean;
}

export interface RekeyStatus {
  readonly started: boolean;
  /** Identifies the step in progress: collecting current shares and then, with verification, new ones. Empty if no rekey is in progress. */
  readonly nonce: string;
  /** Threshold and number of the new shares. */
  readonly t: number;
  readonly n: number;
  readonly progress: number;
  /** Number of shares that this step needs. */
  readonly required: number;
  readonly verificationRequired: boolean;
  readonly verifying: boolean;
}

/** The new shares, returned only once. */
export interface NewShares {
  readonly complete: true;
  readonly shares: readonly Buffer[];
  /** False until they are verified; `unknown` when the outcome of the commit is unknown: then both sets of shares must be kept. */
  readonly inForce: boolean | 'unknown';
  /** The nonce for `verify`, if verification is required. */
  readonly verificationNonce?: string;
}

export type RekeyStep = { readonly complete: false; readonly status: RekeyStatus } | NewShares;

interface RekeyPurpose {
  readonly request: RekeyRequest;
  /** The new key and its shares, while they wait for verification. */
  unverified?: SharedKey;
}

const idle: RekeyStatus = {
  started: false,
  nonce: '',
  t: 0,
  n: 0,
  progress: 0,
  required: 0,
  verificationRequired: false,
  verifying: false,
};

/** Replaces the seal's shares, and the root key, when enough holders of the current shares agree. */
export class Rekey {
  readonly #seal: SealKeeper;
  readonly #attempt: Attempt<RekeyPurpose>;

  constructor({ seal, exclusive }: Pick<AttemptParts<RekeyPurpose>, 'seal' | 'exclusive'>) {
    this.#seal = seal;
    this.#attempt = new Attempt({ seal, exclusive, labels, wipe: ({ unverified }) => unverified?.key.fill(0) });
  }

  get status(): RekeyStatus {
    const { ongoing } = this.#attempt;
    return ongoing === undefined ? idle : statusOf(ongoing);
  }

  /** @throws BarrierError `invalid_seal_config`, `rekey_in_progress` */
  async start({ requireVerification, ...counts }: RekeyRequest): Promise<RekeyStatus> {
    return statusOf(await this.#attempt.start(() => ({ request: { ...checkCounts(counts), requireVerification } })));
  }

  /**
   * Adds one current share; the last one needed creates the new shares.
   * @throws BarrierError `rekey_not_started`, `rekey_nonce`, `invalid_share`, `conflict`
   */
  update(given: GivenShare): Promise<RekeyStep> {
    return this.#attempt.step(async (ongoing) => {
      if (ongoing.unverified !== undefined)
        throw new BarrierError('rekey_in_progress', 'the new shares are waiting for verification');
      if (!(await this.#attempt.addShare(ongoing, given))) return { complete: false, status: statusOf(ongoing) };
      const shared = await newSharedKey(ongoing.request);
      this.#attempt.requireRunning(ongoing);
      if (ongoing.request.requireVerification) return awaitVerification(ongoing, shared);
      try {
        return { complete: true, shares: shared.shares, inForce: await this.#replace(ongoing, shared) };
      } finally {
        shared.key.fill(0);
      }
    });
  }

  /**
   * Adds one of the new shares; the last one needed puts them in force.
   * @throws BarrierError `rekey_not_started`, `rekey_nonce`, `invalid_share`, `conflict`
   */
  verify({ nonce, share }: GivenShare): Promise<{ readonly complete: boolean; readonly status: RekeyStatus }> {
    return this.#attempt.step(async (ongoing) => {
      const { unverified, shares } = ongoing;
      if (unverified === undefined) throw notVerifying();
      this.#attempt.requireNonce(ongoing, nonce);
      shares.add(share);
      if (!shares.complete) return { complete: false, status: statusOf(ongoing) };
      const combined = await shares.combine();
      this.#attempt.requireRunning(ongoing);
      const same = timingSafeEqual(combined, unverified.key);
      combined.fill(0);
      if (!same) throw new Error('the new shares do not combine to the new key');
      if ((await this.#replace(ongoing, unverified)) === 'unknown')
        throw new StoreError('outcome_unknown', 'whether the new shares are in force is unknown: keep both sets');
      return { complete: true, status: this.status };
    });
  }

  /**
   * Discards the new shares that were submitted for verification, and requires them again under a new nonce.
   * @throws BarrierError `rekey_not_started`
   */
  restartVerification(): Promise<RekeyStatus> {
    return this.#attempt.step(async (ongoing) => {
      if (ongoing.unverified === undefined) throw notVerifying();
      awaitVerification(ongoing, ongoing.unverified);
      return statusOf(ongoing);
    });
  }

  /** Ends the rekey in progress, if any, for a caller who knows its nonce or is privileged. @throws BarrierError `rekey_nonce` */
  cancel(by: { readonly nonce: string } | 'privileged'): Promise<void> {
    return this.#attempt.cancel(by);
  }

  /** Ends the rekey in progress, if any, and wipes its keys, synchronously. */
  drop(): void {
    this.#attempt.drop();
  }

  /**
   * Commits the new shares. If the commit certainly changed nothing, the attempt continues, and submitting the last share again
   * retries the commit.
   */
  async #replace(
    { request, record, revision }: OngoingAttempt<RekeyPurpose>,
    { key, shares }: SharedKey,
  ): Promise<true | 'unknown'> {
    // A copy: dropping the attempt meanwhile wipes the original, and a key of zeros must never wrap the root key.
    const sharedKey = Buffer.from(key);
    try {
      const shareHashes = shares.map(hashShare);
      const outcome = await this.#seal.replace({ to: record, counts: request, shareHashes, sharedKey, revision });
      if (outcome === 'conflict') throw this.#attempt.sealChanged();
      this.drop();
      return true;
    } catch (error) {
      if (!(error instanceof StoreError && error.code === 'outcome_unknown')) throw error;
      this.drop();
      return 'unknown';
    } finally {
      sharedKey.fill(0);
    }
  }
}

const notVerifying = (): BarrierError => new BarrierError('rekey_not_started', 'no new shares are waiting for verification');

const labels: AttemptLabels = { name: 'rekey', step: 'rekey operation', code: 'rekey' };

const statusOf = ({ request, shares, unverified }: OngoingAttempt<RekeyPurpose>): RekeyStatus => ({
  started: true,
  nonce: shares.nonce,
  t: request.threshold,
  n: request.shares,
  progress: shares.progress,
  required: shares.threshold,
  verificationRequired: request.requireVerification,
  verifying: unverified !== undefined,
});

function awaitVerification(ongoing: OngoingAttempt<RekeyPurpose>, shared: SharedKey): NewShares {
  ongoing.shares.wipe();
  ongoing.shares = new ShareCollection(ongoing.request.threshold, shared.shares.map(hashShare));
  ongoing.unverified = shared;
  return { complete: true, shares: shared.shares, inForce: false, verificationNonce: ongoing.shares.nonce };
}
