import { timingSafeEqual } from 'node:crypto';
import { StoreError } from '@transitd/storage-fsm';
import { BarrierError } from './errors.ts';
import { checkCounts, type ShareCounts } from './seal-config.ts';
import type { SealKeeper } from './seal-keeper.ts';
import type { SealRecord } from './seal-record.ts';
import { hashShare, newSharedKey, ShareCollection, type SharedKey } from './shares.ts';

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

export interface GivenShare {
  readonly nonce: string;
  readonly share: Uint8Array;
}

interface Attempt {
  readonly request: RekeyRequest;
  readonly record: SealRecord;
  readonly revision: number;
  readonly authorization: ShareCollection;
  verification?: { readonly shared: SharedKey; readonly shares: ShareCollection };
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

/** One exchange of the shares at a time, in this node's memory only: it ends with success, a cancel, sealing, the loss of the lead or the process. */
export class Rekey {
  readonly #seal: SealKeeper;
  readonly #exclusive: <T>(task: () => Promise<T>) => Promise<T>;
  #attempt: Attempt | undefined;

  constructor(seal: SealKeeper, exclusive: <T>(task: () => Promise<T>) => Promise<T>) {
    this.#seal = seal;
    this.#exclusive = exclusive;
  }

  get status(): RekeyStatus {
    if (this.#attempt === undefined) return idle;
    const { request, authorization, verification } = this.#attempt;
    const step = verification?.shares ?? authorization;
    return {
      started: true,
      nonce: step.nonce,
      t: request.threshold,
      n: request.shares,
      progress: step.progress,
      required: step.threshold,
      verificationRequired: request.requireVerification,
      verifying: verification !== undefined,
    };
  }

  /** @throws BarrierError `invalid_seal_config`, `rekey_in_progress` */
  start({ requireVerification, ...counts }: RekeyRequest): Promise<RekeyStatus> {
    return this.#exclusive(async () => {
      if (this.#attempt !== undefined) throw new BarrierError('rekey_in_progress', 'rekey already in progress');
      const request = { ...checkCounts(counts), requireVerification };
      const { record, revision } = await this.#seal.current();
      this.#attempt = { request, record, revision, authorization: new ShareCollection(record.threshold, record.shareHashes) };
      return this.status;
    });
  }

  /**
   * Takes one present share; the last one needed makes the new shares.
   * @throws BarrierError `rekey_not_started`, `rekey_nonce`, `invalid_share`, `conflict`
   */
  update({ nonce, share }: GivenShare): Promise<RekeyStep> {
    return this.#exclusive(async () => {
      const attempt = this.#started();
      if (attempt.verification !== undefined)
        throw new BarrierError('rekey_in_progress', 'the new shares wait for their verification');
      requireNonce(attempt.authorization, nonce);
      if ((await this.#seal.current()).revision !== attempt.revision) throw this.#overtaken();
      this.#stillRuns(attempt);
      attempt.authorization.add(share);
      if (!attempt.authorization.complete) return { complete: false, status: this.status };
      await this.#seal.prove(attempt.record, attempt.authorization);
      const shared = await newSharedKey(attempt.request);
      this.#stillRuns(attempt);
      if (attempt.request.requireVerification) return this.#awaitVerification(attempt, shared);
      try {
        return { complete: true, shares: shared.shares, inForce: await this.#replace(attempt, shared) };
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
    return this.#exclusive(async () => {
      const attempt = this.#started();
      const { verification } = attempt;
      if (verification === undefined) throw new BarrierError('rekey_not_started', 'no new shares wait for verification');
      requireNonce(verification.shares, nonce);
      verification.shares.add(share);
      if (!verification.shares.complete) return { complete: false, status: this.status };
      const combined = await verification.shares.combine();
      this.#stillRuns(attempt);
      const same = timingSafeEqual(combined, verification.shared.key);
      combined.fill(0);
      if (!same) throw new Error('the new shares do not give the new key');
      if ((await this.#replace(attempt, verification.shared)) === 'unknown')
        throw new StoreError('outcome_unknown', 'whether the new shares are in force is unknown: keep both sets');
      return { complete: true, status: this.status };
    });
  }

  /** Ends what is started, if anything: for who knows its nonce, or may do anything. @throws BarrierError `rekey_nonce` */
  cancel(by: { readonly nonce: string } | 'privileged'): Promise<void> {
    return this.#exclusive(async () => {
      const attempt = this.#attempt;
      if (attempt === undefined) return;
      if (by !== 'privileged') requireNonce(attempt.verification?.shares ?? attempt.authorization, by.nonce);
      this.drop();
    });
  }

  /** Ends what is started and wipes its keys, at once. */
  drop(): void {
    this.#attempt?.authorization.wipe();
    this.#attempt?.verification?.shares.wipe();
    this.#attempt?.verification?.shared.key.fill(0);
    this.#attempt = undefined;
  }

  #started(): Attempt {
    if (this.#attempt === undefined) throw new BarrierError('rekey_not_started', 'no rekey in progress');
    return this.#attempt;
  }

  /** Sealing, or the loss of the lead, drops an attempt while one of its steps waits. */
  #stillRuns(attempt: Attempt): void {
    if (this.#attempt !== attempt)
      throw new StoreError('sealed', 'the rekey has ended: this node was sealed, or does not lead any more');
  }

  /** Another rekey, or a rewrapping, came first: the shares gathered here are of a seal that is no more. */
  #overtaken(): BarrierError {
    this.drop();
    return new BarrierError('conflict', 'the seal was changed meanwhile; this rekey is void');
  }

  #awaitVerification(attempt: Attempt, shared: SharedKey): NewShares {
    attempt.authorization.wipe();
    attempt.verification = { shared, shares: new ShareCollection(attempt.request.threshold, shared.shares.map(hashShare)) };
    return { complete: true, shares: shared.shares, inForce: false, verificationNonce: attempt.verification.shares.nonce };
  }

  /** After a refusal that certainly changed nothing the attempt stays, and giving the last share again tries again. */
  async #replace({ request, revision }: Attempt, { key, shares }: SharedKey): Promise<true | 'unknown'> {
    const shared = { key: Buffer.from(key), shares }; // a drop meanwhile wipes the other: nothing may be wrapped by zeros
    try {
      const outcome = await this.#seal.replace({ counts: request, shared, revision });
      if (outcome === 'conflict') throw this.#overtaken();
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

/** A step's nonce is known to whoever took part in it; it is compared as such, and no error tells it. */
function requireNonce(step: ShareCollection, nonce: string): void {
  if (step.nonce !== nonce) throw new BarrierError('rekey_nonce', 'incorrect nonce for this rekey operation');
}
