import { StoreError } from '@transitd/storage-fsm';
import { Attempt, type AttemptParts, type AttemptWords, type Gathering, type GivenShare } from './attempt.ts';

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

interface Masking {
  /** As long as the token. */
  readonly pad: Buffer;
  /** The caller that began the attempt. */
  readonly from: string;
  readonly begunMs: number;
}

/**
 * Anybody may begin an attempt, so one to which no holder has given a share keeps the others out for a bounded time, in milliseconds:
 * a caller from elsewhere may replace it after a minute, the caller that began it after ten.
 */
const [keptFromOthersMs, keptFromItselfMs] = [60_000, 600_000];

const idle: RootGenerationStatus = { started: false, nonce: '', progress: 0, required: 0 };

/** The making of one root token by agreement. */
export class RootGeneration {
  readonly #attempt: Attempt<Masking>;
  readonly #now: () => number;

  /** @param parts - `now`: milliseconds since the epoch */
  constructor({ now, ...parts }: Pick<AttemptParts<Masking>, 'seal' | 'exclusive'> & { readonly now: () => number }) {
    this.#attempt = new Attempt({ ...parts, words, wipe: ({ pad }) => pad.fill(0) });
    this.#now = now;
  }

  get status(): RootGenerationStatus {
    const { gathering } = this.#attempt;
    return gathering === undefined ? idle : statusOf(gathering);
  }

  /**
   * Begins an attempt. It replaces one that has no share and is old enough.
   * @param pad - only the caller knows it, and it is as long as the token will be; it is copied
   * @param from - names the caller, by its address
   * @throws BarrierError `root_generation_in_progress`
   */
  async start(pad: Uint8Array, from = ''): Promise<RootGenerationStatus> {
    const begunMs = this.#now();
    const displaces = (present: Gathering<Masking>): boolean =>
      present.shares.progress === 0 && begunMs - present.begunMs >= (present.from === from ? keptFromItselfMs : keptFromOthersMs);
    return statusOf(await this.#attempt.start(() => ({ pad: Buffer.from(pad), from, begunMs }), displaces));
  }

  /**
   * Takes one share; with the last one needed the token is made. When making it was refused, giving a share again tries again.
   * @param make - makes the token; called when enough holders have agreed
   * @throws BarrierError `root_generation_not_started`, `root_generation_nonce`, `invalid_share`, `conflict`; what `make` throws
   */
  update(given: GivenShare, make: () => Promise<string>): Promise<RootGenerationStep> {
    return this.#attempt.step(async (gathering) => {
      if (!(await this.#attempt.agreed(gathering, given))) return { complete: false, status: statusOf(gathering) };
      const status = statusOf(gathering);
      const token = Buffer.from(await this.#made(make));
      try {
        this.#attempt.requireRunning(gathering); // or its pad is wiped, and would mask nothing
        return { complete: true, status, masked: masked(token, gathering.pad) };
      } finally {
        token.fill(0);
        this.drop();
      }
    });
  }

  /** Ends what is started, if anything: for who knows its nonce, or may do anything. @throws BarrierError `root_generation_nonce` */
  cancel(by: { readonly nonce: string } | 'privileged'): Promise<void> {
    return this.#attempt.cancel(by);
  }

  /** Ends what is started and wipes what it holds, at once. */
  drop(): void {
    this.#attempt.drop();
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
}

const words: AttemptWords = { name: 'root generation', step: 'root generation', code: 'root_generation' };

const statusOf = ({ shares }: Gathering<Masking>): RootGenerationStatus => ({
  started: true,
  nonce: shares.nonce,
  progress: shares.progress,
  required: shares.threshold,
});

function masked(token: Buffer, pad: Buffer): Buffer {
  if (token.length !== pad.length) throw new Error('the pad is not as long as the token');
  return Buffer.from(token.map((byte, at) => byte ^ (pad[at] ?? 0)));
}
