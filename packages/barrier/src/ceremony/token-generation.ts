import type { RecordClock } from '@transitd/process';
import { StoreError } from '@transitd/storage-fsm';
import { Attempt, type AttemptLabels, type AttemptParts, type GivenShare, type OngoingAttempt } from './attempt.ts';

export interface TokenGenerationStatus {
  readonly started: boolean;
  /** Identifies the attempt for its participants; empty if none is in progress. */
  readonly nonce: string;
  readonly progress: number;
  /** Number of shares that the attempt needs; 0 if none is in progress. */
  readonly required: number;
}

export type TokenGenerationStep =
  | { readonly complete: false; readonly status: TokenGenerationStatus }
  /** The token XORed with the pad byte by byte, so that only the caller who began the attempt can read it. */
  | { readonly complete: true; readonly status: TokenGenerationStatus; readonly masked: Buffer };

interface TokenGenerationPurpose {
  /** The pad that masks the token; as long as the token. */
  readonly pad: Buffer;
  /** The caller that began the attempt. */
  readonly from: string;
  readonly begunMs: number;
}

/**
 * Anybody may begin an attempt, so an attempt without any share blocks new ones only for a limited time: a caller from another address may
 * replace it after one minute, the caller that began it after ten.
 */
const [replaceableByOthersMs, replaceableBySameMs] = [60_000, 600_000];

const idle: TokenGenerationStatus = { started: false, nonce: '', progress: 0, required: 0 };

/** Creates a token when enough share holders agree. */
export class TokenGeneration {
  readonly #attempt: Attempt<TokenGenerationPurpose>;
  readonly #clock: RecordClock;

  /**
   * @param name - name of the ceremony in error messages
   */
  constructor(
    name: string,
    { clock, ...parts }: Pick<AttemptParts<TokenGenerationPurpose>, 'seal' | 'exclusive'> & { readonly clock: RecordClock },
  ) {
    const labels: AttemptLabels = { name, step: name, code: 'root_generation' };
    this.#attempt = new Attempt({ ...parts, labels, wipe: ({ pad }) => pad.fill(0) });
    this.#clock = clock;
  }

  get status(): TokenGenerationStatus {
    const { ongoing } = this.#attempt;
    return ongoing === undefined ? idle : statusOf(ongoing);
  }

  /**
   * Begins an attempt. The new attempt replaces one in progress that has no share and is old enough.
   * @param pad - known only to the caller and as long as the token will be; it is copied
   * @param from - the caller's address
   * @throws BarrierError `root_generation_in_progress`
   */
  async start(pad: Uint8Array, from = ''): Promise<TokenGenerationStatus> {
    const begunMs = this.#clock.dueMs();
    const mayReplace = (current: OngoingAttempt<TokenGenerationPurpose>): boolean =>
      current.shares.progress === 0 &&
      begunMs - current.begunMs >= (current.from === from ? replaceableBySameMs : replaceableByOthersMs);
    return statusOf(await this.#attempt.start(() => ({ pad: Buffer.from(pad), from, begunMs }), mayReplace));
  }

  /**
   * Adds one share; the last one needed creates the token. If creating it fails, submitting a share again retries.
   * @param createToken - called when enough holders have agreed
   * @throws BarrierError `root_generation_not_started`, `root_generation_nonce`, `invalid_share`, `conflict`; errors of `createToken`
   */
  update(given: GivenShare, createToken: () => Promise<string>): Promise<TokenGenerationStep> {
    return this.#attempt.step(async (ongoing) => {
      if (!(await this.#attempt.addShare(ongoing, given))) return { complete: false, status: statusOf(ongoing) };
      const status = statusOf(ongoing);
      const token = Buffer.from(await this.#create(createToken));
      try {
        this.#attempt.requireRunning(ongoing); // the pad of a dropped attempt is wiped: a pad of zeros would not mask the token
        return { complete: true, status, masked: masked(token, ongoing.pad) };
      } finally {
        token.fill(0);
        this.drop();
      }
    });
  }

  /** Ends the attempt in progress, for a caller who knows its nonce or is privileged. @throws BarrierError `root_generation_nonce` */
  cancel(by: { readonly nonce: string } | 'privileged'): Promise<void> {
    return this.#attempt.cancel(by);
  }

  /** Ends the attempt in progress, if any, and wipes its secrets, synchronously. */
  drop(): void {
    this.#attempt.drop();
  }

  /** Creates the token. An unknown outcome ends the attempt: the token may exist, and one agreement creates at most one token. */
  async #create(createToken: () => Promise<string>): Promise<string> {
    try {
      return await createToken();
    } catch (error) {
      if (error instanceof StoreError && error.code === 'outcome_unknown') this.drop();
      throw error;
    }
  }
}

const statusOf = ({ shares }: OngoingAttempt<TokenGenerationPurpose>): TokenGenerationStatus => ({
  started: true,
  nonce: shares.nonce,
  progress: shares.progress,
  required: shares.threshold,
});

function masked(token: Buffer, pad: Buffer): Buffer {
  if (token.length !== pad.length) throw new Error('the pad is not as long as the token');
  return Buffer.from(token.map((byte, at) => byte ^ (pad[at] ?? 0)));
}
