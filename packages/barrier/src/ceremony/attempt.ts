import { StoreError } from '@transitd/storage-fsm';
import { BarrierError } from '../errors.ts';
import type { SealKeeper } from '../seal/seal-keeper.ts';
import type { SealRecord } from '../seal/seal-record.ts';
import { ShareCollection } from '../seal/shares.ts';

export interface GivenShare {
  readonly nonce: string;
  readonly share: Uint8Array;
}

/** Shares of the seal that was present when the attempt began, with what they are gathered for. */
export type Gathering<Purpose extends object> = Purpose & {
  readonly record: SealRecord;
  readonly revision: number;
  /** Of the step in progress, which their nonce names. */
  shares: ShareCollection;
};

/** How the refusals name an attempt. */
export interface AttemptWords {
  readonly name: string;
  readonly step: string;
  /** Their codes begin with it. */
  readonly code: 'rekey' | 'root_generation';
}

export interface AttemptParts<Purpose extends object> {
  readonly seal: SealKeeper;
  readonly exclusive: <T>(task: () => Promise<T>) => Promise<T>;
  readonly words: AttemptWords;
  /** Overwrites what is secret in the purpose. */
  readonly wipe: (purpose: Purpose) => void;
}

/**
 * What enough holders of the seal's shares have to agree upon, one at a time and in this node's memory only: it ends with success, a
 * cancel, sealing, the loss of the lead or the process.
 */
export class Attempt<Purpose extends object> {
  readonly #parts: AttemptParts<Purpose>;
  #gathering: Gathering<Purpose> | undefined;

  constructor(parts: AttemptParts<Purpose>) {
    this.#parts = parts;
  }

  /** Undefined while none is started. */
  get gathering(): Gathering<Purpose> | undefined {
    return this.#gathering;
  }

  /**
   * @param displaces - whether the new attempt may end one that is in progress; none may unless given
   * @throws BarrierError `…_in_progress`; what `purpose` throws
   */
  start(purpose: () => Purpose, displaces?: (present: Gathering<Purpose>) => boolean): Promise<Gathering<Purpose>> {
    const { seal, exclusive, words, wipe } = this.#parts;
    return exclusive(async () => {
      if (this.#gathering !== undefined && displaces?.(this.#gathering) === true) this.drop();
      if (this.#gathering !== undefined) throw new BarrierError(`${words.code}_in_progress`, `${words.name} already in progress`);
      const aim = purpose();
      const { record, revision } = await seal.current().catch((error: unknown) => {
        wipe(aim);
        throw error;
      });
      this.#gathering = { ...aim, record, revision, shares: new ShareCollection(record.threshold, record.shareHashes) };
      return this.#gathering;
    });
  }

  /** Goes on with what is started, alone. @throws BarrierError `…_not_started` */
  step<T>(task: (gathering: Gathering<Purpose>) => Promise<T>): Promise<T> {
    const { exclusive, words } = this.#parts;
    return exclusive(async () => {
      if (this.#gathering === undefined) throw new BarrierError(`${words.code}_not_started`, `no ${words.name} in progress`);
      return task(this.#gathering);
    });
  }

  /**
   * Takes a share of the present seal.
   * @returns whether enough holders have agreed, by the key that is in force
   * @throws BarrierError `…_nonce`, `invalid_share`, `conflict`; StoreError `sealed`
   */
  async agreed(gathering: Gathering<Purpose>, { nonce, share }: GivenShare): Promise<boolean> {
    const { seal } = this.#parts;
    this.requireNonce(gathering, nonce);
    if ((await seal.current()).revision !== gathering.revision) throw this.overtaken();
    this.requireRunning(gathering);
    gathering.shares.add(share);
    if (!gathering.shares.complete) return false;
    await seal.prove(gathering.record, gathering.shares);
    this.requireRunning(gathering);
    return true;
  }

  /** A step's nonce is known to whoever took part in it; it is compared as such, and no error tells it. @throws BarrierError `…_nonce` */
  requireNonce({ shares }: Gathering<Purpose>, nonce: string): void {
    const { code, step } = this.#parts.words;
    if (shares.nonce !== nonce) throw new BarrierError(`${code}_nonce`, `incorrect nonce for this ${step}`);
  }

  /** Sealing, or the loss of the lead, drops an attempt while one of its steps waits. @throws StoreError `sealed` */
  requireRunning(gathering: Gathering<Purpose>): void {
    const { name } = this.#parts.words;
    if (this.#gathering !== gathering)
      throw new StoreError('sealed', `the ${name} has ended: this node was sealed, or does not lead any more`);
  }

  /** The seal was exchanged, or wrapped anew: the shares gathered here are of one that is no more. */
  overtaken(): BarrierError {
    this.drop();
    return new BarrierError('conflict', `the seal was changed meanwhile; this ${this.#parts.words.name} is void`);
  }

  /** Ends what is started, if anything: for who knows its nonce, or may do anything. @throws BarrierError `…_nonce` */
  cancel(by: { readonly nonce: string } | 'privileged'): Promise<void> {
    return this.#parts.exclusive(async () => {
      if (this.#gathering === undefined) return;
      if (by !== 'privileged') this.requireNonce(this.#gathering, by.nonce);
      this.drop();
    });
  }

  /** Ends what is started and wipes what it holds, at once. */
  drop(): void {
    const gathering = this.#gathering;
    this.#gathering = undefined;
    if (gathering === undefined) return;
    gathering.shares.wipe();
    this.#parts.wipe(gathering);
  }
}
