import { timingSafeEqual } from 'node:crypto';
import { StoreError } from '@transitd/storage-fsm';
import { BarrierError } from '../errors.ts';
import { checkCounts, type ShareCounts } from '../seal/seal-config.ts';
import type { SealKeeper } from '../seal/seal-keeper.ts';
import { hashShare, newSharedKey, ShareCollection, type SharedKey } from '../seal/shares.ts';
import { Attempt, type AttemptParts, type AttemptWords, type Gathering, type GivenShare } from './attempt.ts';

export interface RekeyRequest extends ShareCounts {
  /** The new shares take effect only when enough of them were given back, so that none can be lost on the way. */
  readonly requireVerification: boolean;
}

export interface RekeyStatus {
  readonly started: boolean;
  /** Names the step in progress: gathering present shares, then, with verification, new ones. Empty while none is started. */
  readonly nonce: string;
  /** Threshold and number of the new shares. */
  readonly t: number;
  readonly n: number;
  readonly progress: number;
  /** Shares that this step needs. */
  readonly required: number;
  readonly verificationRequired: boolean;
  readonly verifying: boolean;
}

/** The new shares, given out once. */
export interface NewShares {
  readonly complete: true;
  readonly shares: readonly Buffer[];
  /** False until they are verified; `unknown` when the commit got no answer: then both sets of shares must be kept. */
  readonly inForce: boolean | 'unknown';
  /** For `verify`, when it is required. */
  readonly verificationNonce?: string;
}

export type RekeyStep = { readonly complete: false; readonly status: RekeyStatus } | NewShares;

interface Exchange {
  readonly request: RekeyRequest;
  /** What the new shares are of, while they wait for their verification. */
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

/** The exchange of the seal's shares for new ones. */
export class Rekey {
  readonly #seal: SealKeeper;
  readonly #attempt: Attempt<Exchange>;

  constructor({ seal, exclusive }: Pick<AttemptParts<Exchange>, 'seal' | 'exclusive'>) {
    this.#seal = seal;
    this.#attempt = new Attempt({ seal, exclusive, words, wipe: ({ unverified }) => unverified?.key.fill(0) });
  }

  get status(): RekeyStatus {
    const { gathering } = this.#attempt;
    return gathering === undefined ? idle : statusOf(gathering);
  }

  /** @throws BarrierError `invalid_seal_config`, `rekey_in_progress` */
  async start({ requireVerification, ...counts }: RekeyRequest): Promise<RekeyStatus> {
    return statusOf(await this.#attempt.start(() => ({ request: { ...checkCounts(counts), requireVerification } })));
  }

  /**
   * Takes one present share; the last one needed makes the new shares.
   * @throws BarrierError `rekey_not_started`, `rekey_nonce`, `invalid_share`, `conflict`
   */
  update(given: GivenShare): Promise<RekeyStep> {
    return this.#attempt.step(async (gathering) => {
      if (gathering.unverified !== undefined)
        throw new BarrierError('rekey_in_progress', 'the new shares wait for their verification');
      if (!(await this.#attempt.agreed(gathering, given))) return { complete: false, status: statusOf(gathering) };
      const shared = await newSharedKey(gathering.request);
      this.#attempt.requireRunning(gathering);
      if (gathering.request.requireVerification) return awaitVerification(gathering, shared);
      try {
        return { complete: true, shares: shared.shares, inForce: await this.#replace(gathering, shared) };
      } finally {
        shared.key.fill(0);
      }
    });
  }

  /**
   * Takes one of the new shares back; the last one needed puts them in force.
   * @throws BarrierError `rekey_not_started`, `rekey_nonce`, `invalid_share`, `conflict`
   */
  verify({ nonce, share }: GivenShare): Promise<{ readonly complete: boolean; readonly status: RekeyStatus }> {
    return this.#attempt.step(async (gathering) => {
      const { unverified, shares } = gathering;
      if (unverified === undefined) throw new BarrierError('rekey_not_started', 'no new shares wait for verification');
      this.#attempt.requireNonce(gathering, nonce);
      shares.add(share);
      if (!shares.complete) return { complete: false, status: statusOf(gathering) };
      const combined = await shares.combine();
      this.#attempt.requireRunning(gathering);
      const same = timingSafeEqual(combined, unverified.key);
      combined.fill(0);
      if (!same) throw new Error('the new shares do not give the new key');
      if ((await this.#replace(gathering, unverified)) === 'unknown')
        throw new StoreError('outcome_unknown', 'whether the new shares are in force is unknown: keep both sets');
      return { complete: true, status: this.status };
    });
  }

  /** Ends what is started, if anything: for who knows its nonce, or may do anything. @throws BarrierError `rekey_nonce` */
  cancel(by: { readonly nonce: string } | 'privileged'): Promise<void> {
    return this.#attempt.cancel(by);
  }

  /** Ends what is started and wipes its keys, at once. */
  drop(): void {
    this.#attempt.drop();
  }

  /** After a refusal that certainly changed nothing the attempt stays, and giving the last share again tries again. */
  async #replace({ request, revision }: Gathering<Exchange>, { key, shares }: SharedKey): Promise<true | 'unknown'> {
    const shared = { key: Buffer.from(key), shares }; // a drop meanwhile wipes the other: nothing may be wrapped by zeros
    try {
      const outcome = await this.#seal.replace({ counts: request, shared, revision });
      if (outcome === 'conflict') throw this.#attempt.overtaken();
      this.drop();
      return true;
    } catch (error) {
      if (!(error instanceof StoreError && error.code === 'outcome_unknown')) throw error;
      this.drop();
      return 'unknown';
    } finally {
      shared.key.fill(0);
    }
  }
}

const words: AttemptWords = { name: 'rekey', step: 'rekey operation', code: 'rekey' };

const statusOf = ({ request, shares, unverified }: Gathering<Exchange>): RekeyStatus => ({
  started: true,
  nonce: shares.nonce,
  t: request.threshold,
  n: request.shares,
  progress: shares.progress,
  required: shares.threshold,
  verificationRequired: request.requireVerification,
  verifying: unverified !== undefined,
});

function awaitVerification(gathering: Gathering<Exchange>, shared: SharedKey): NewShares {
  gathering.shares.wipe();
  gathering.shares = new ShareCollection(gathering.request.threshold, shared.shares.map(hashShare));
  gathering.unverified = shared;
  return { complete: true, shares: shared.shares, inForce: false, verificationNonce: gathering.shares.nonce };
}
