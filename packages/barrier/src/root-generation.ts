import { StoreError } from '@transitd/storage-fsm';
import { BarrierError } from './errors.ts';
import type { GivenShare } from './rekey.ts';
import type { SealKeeper } from './seal-keeper.ts';
import type { SealRecord } from './seal-record.ts';
import { ShareCollection } from './shares.ts';

export interface RootGenerationStatus {
  readonly started: boolean;
  /** Names the attempt, for whoever takes part in it; empty while none is started. */
  readonly nonce: string;
  readonly progress: number;
  /** Shares that it needs; 0 while none is started. */
  readonly required: number;
}

export type RootGenerationStep =
  | { readonly complete: false; readonly status: RootGenerationStatus }
  /** The token, each byte XORed with that of the pad: who began the attempt, and nobody else, can read it. */
  | { readonly complete: true; readonly status: RootGenerationStatus; readonly masked: Buffer };

interface Attempt {
  readonly record: SealRecord;
  readonly revision: number;
  readonly shares: ShareCollection;
  /** As long as the token. */
  readonly pad: Buffer;
}

const idle: RootGenerationStatus = { started: false, nonce: '', progress: 0, required: 0 };

/** One attempt at a time, in this node's memory only: it ends with success, a cancel, sealing or the process. */
export class RootGeneration {
  readonly #seal: SealKeeper;
  readonly #exclusive: <T>(task: () => Promise<T>) => Promise<T>;
  #attempt: Attempt | undefined;

  constructor(seal: SealKeeper, exclusive: <T>(task: () => Promise<T>) => Promise<T>) {
    this.#seal = seal;
    this.#exclusive = exclusive;
  }

  get status(): RootGenerationStatus {
    return this.#attempt === undefined ? idle : statusOf(this.#attempt);
  }

  /** @param pad - what only the caller knows, as long as the token will be; it is copied. @throws BarrierError `root_generation_in_progress` */
  start(pad: Uint8Array): Promise<RootGenerationStatus> {
    return this.#exclusive(async () => {
      if (this.#attempt !== undefined)
        throw new BarrierError('root_generation_in_progress', 'root generation already in progress');
      const { record, revision } = await this.#seal.current();
      const shares = new ShareCollection(record.threshold, record.shareHashes);
      this.#attempt = { record, revision, shares, pad: Buffer.from(pad) };
      return this.status;
    });
  }

  /**
   * Takes one share; with the last one needed the token is made. When making it was refused, giving a share again tries again.
   * @param make - makes the token; called when enough holders have agreed
   * @throws BarrierError `root_generation_not_started`, `root_generation_nonce`, `invalid_share`, `conflict`; what `make` throws
   */
  update({ nonce, share }: GivenShare, make: () => Promise<string>): Promise<RootGenerationStep> {
    return this.#exclusive(async () => {
      const attempt = this.#attempt;
      if (attempt === undefined) throw new BarrierError('root_generation_not_started', 'no root generation in progress');
      requireNonce(attempt, nonce);
      if ((await this.#seal.current()).revision !== attempt.revision) {
        this.drop();
        throw new BarrierError('conflict', 'the seal was changed meanwhile; this root generation is void');
      }
      this.#stillRuns(attempt);
      attempt.shares.add(share);
      if (!attempt.shares.complete) return { complete: false, status: statusOf(attempt) };
      await this.#seal.prove(attempt.record, attempt.shares);
      this.#stillRuns(attempt);
      const status = statusOf(attempt);
      const token = Buffer.from(await this.#made(make));
      try {
        this.#stillRuns(attempt); // or its pad is wiped, and would mask nothing
        return { complete: true, status, masked: masked(token, attempt.pad) };
      } finally {
        token.fill(0);
        this.drop();
      }
    });
  }

  /** Ends what is started, if anything: for who knows its nonce, or may do anything. @throws BarrierError `root_generation_nonce` */
  cancel(by: { readonly nonce: string } | 'privileged'): Promise<void> {
    return this.#exclusive(async () => {
      if (this.#attempt === undefined) return;
      if (by !== 'privileged') requireNonce(this.#attempt, by.nonce);
      this.drop();
    });
  }

  /** Ends what is started and wipes what it holds, at once. */
  drop(): void {
    this.#attempt?.shares.wipe();
    this.#attempt?.pad.fill(0);
    this.#attempt = undefined;
  }

  /** A token that may be there although nobody has seen it ends the attempt: one agreement makes one token. */
  async #made(make: () => Promise<string>): Promise<string> {
    try {
      return await make();
    } catch (error) {
      if (error instanceof StoreError && error.code === 'outcome_unknown') this.drop();
      throw error;
    }
  }

  /** Sealing, or the loss of the lead, drops an attempt while one of its steps waits. */
  #stillRuns(attempt: Attempt): void {
    if (this.#attempt !== attempt)
      throw new StoreError('sealed', 'the root generation has ended: this node was sealed, or does not lead any more');
  }
}

const statusOf = ({ shares }: Attempt): RootGenerationStatus => ({
  started: true,
  nonce: shares.nonce,
  progress: shares.progress,
  required: shares.threshold,
});

function requireNonce({ shares }: Attempt, nonce: string): void {
  if (shares.nonce !== nonce) throw new BarrierError('root_generation_nonce', 'incorrect nonce for this root generation');
}

function masked(token: Buffer, pad: Buffer): Buffer {
  if (token.length !== pad.length) throw new Error('the pad is not as long as the token');
  return Buffer.from(token.map((byte, at) => byte ^ (pad[at] ?? 0)));
}
