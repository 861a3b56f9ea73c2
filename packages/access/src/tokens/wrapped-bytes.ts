import { accessTurns, TimeSlice } from '@transitd/event-loop';
import type { RecordClock } from '@transitd/process';
import { type Changes, pagesBelow, type Store, StoreError } from '@transitd/storage-fsm';
import { invalidRequest } from '../values/errors.ts';
import { wrappedPath } from './token-paths.ts';

/** Room that a response takes beside its body: its record, and the records of its wrapping token. */
const overheadBytes = 2 * 1024;
/** Bytes of the stored responses of one owner. */
const bytesMaxDefault = 64 * 1024 * 1024;
/** Responses that are counted, of all owners; the oldest are forgotten first. One owner has at most an eighth of them. */
const responsesMax = 262_144;

/** The part of a stored response that counts. */
export interface WrappedShare {
  /** The caller to whose share it counts. */
  readonly owner: string;
  /** Length of the body. */
  readonly bodyBytes: number;
  readonly expiresMs: number;
}

interface WrappedBytesOptions {
  readonly store: Store;
  readonly clock: RecordClock;
  /** Reads the share of a stored response without reading its body. */
  readonly shareIn: (stored: Uint8Array) => WrappedShare;
  readonly bytesMax?: number | undefined;
}

/**
 * Counts the wrapped responses of each owner until they are fetched, revoked or expire, so that a caller with few rights cannot fill the
 * disk with them. The counts are in memory of the active node. Those that another node has stored are read from the records, beginning
 * with the first response that this node wraps afterwards.
 */
export class WrappedBytes {
  readonly #options: WrappedBytesOptions;
  readonly #bytesMax: number;
  /** By the id of the wrapping token, oldest first. */
  readonly #responses = new Map<string, WrappedShare>();
  readonly #bytes = new Map<string, number>();
  readonly #unwatch: () => void;
  /** Whether every stored response counts, or is being read. */
  #isComplete = false;
  #reading: Promise<void> = Promise.resolve();
  /**
   * Ids of the responses that were deleted since the records are being read: a page that was read before still has them. Undefined while
   * none are read.
   */
  #deleted: Set<string> | undefined;

  constructor(options: WrappedBytesOptions) {
    this.#options = options;
    this.#bytesMax = options.bytesMax ?? bytesMaxDefault;
    this.#unwatch = options.store.watch(wrappedPath(''), (changes) => this.#changed(changes));
  }

  /** Settles when the records that are being read are counted. */
  get reading(): Promise<void> {
    return this.#reading;
  }

  /** Counts a response, before it is stored. @throws AccessError `invalid_request` if its owner has no room for it */
  add(id: string, share: WrappedShare): void {
    if (!this.#isComplete) this.#read();
    if (this.#isBeyond(share)) this.#forgetExpired(share.owner);
    if (this.#isBeyond(share))
      throw invalidRequest(
        `the response is not wrapped, because those of this caller would take more than ${this.#bytesMax} bytes: ` +
          'unwrap some of them, or wait until they expire. The request itself was executed',
      );
    this.#set(id, share);
  }

  /** Counts a response for another wrapping token too, which replaces that of `before`. */
  copy(before: string, id: string): void {
    const response = this.#responses.get(before);
    if (response !== undefined) this.#set(id, response);
  }

  /** Runs a commit that stores a response. If it certainly did not, the response no longer counts. */
  async whileStoring(id: string, commits: () => Promise<boolean>): Promise<boolean> {
    let mayBeStored = false;
    try {
      mayBeStored = await commits();
      return mayBeStored;
    } catch (error) {
      mayBeStored = error instanceof StoreError && error.code === 'outcome_unknown';
      throw error;
    } finally {
      if (!mayBeStored) this.#remove(id);
    }
  }

  close(): void {
    this.#unwatch();
  }

  #set(id: string, share: WrappedShare): void {
    this.#remove(id);
    const [oldest] = this.#responses.keys();
    if (this.#responses.size >= responsesMax && oldest !== undefined) this.#remove(oldest);
    this.#responses.set(id, share);
    this.#bytes.set(share.owner, this.#of(share.owner) + roomOf(share));
  }

  #remove(id: string): void {
    const share = this.#responses.get(id);
    if (share === undefined) return;
    this.#responses.delete(id);
    const left = this.#of(share.owner) - roomOf(share);
    if (left > 0) this.#bytes.set(share.owner, left);
    else this.#bytes.delete(share.owner);
  }

  #changed(changes: Changes): void {
    if (changes === 'everything') {
      this.#responses.clear();
      this.#bytes.clear();
      this.#isComplete = false;
      this.#deleted = undefined;
      return;
    }
    for (const { path, deleted } of changes) {
      const id = path.slice(wrappedPath('').length);
      if (deleted) {
        this.#remove(id);
        this.#deleted?.add(id);
      } else if (!this.#responses.has(id)) this.#isComplete = false; // another node was active
    }
  }

  /** Begins to count the stored responses. A failure is repeated with the next response. */
  #read(): void {
    this.#isComplete = true;
    this.#reading = this.#readAll().catch(() => {
      this.#isComplete = false;
    });
  }

  /** Ends early once a later reading has begun, or all records were replaced. */
  async #readAll(): Promise<void> {
    const { store, shareIn } = this.#options;
    const prefix = wrappedPath('');
    const slice = new TimeSlice(accessTurns);
    const deleted = new Set<string>();
    this.#deleted = deleted;
    try {
      for await (const records of pagesBelow(store, { prefix }))
        for (const { path, value } of records) {
          if (slice.isOver) await slice.next();
          if (this.#deleted !== deleted) return;
          const id = path.slice(prefix.length);
          if (!deleted.has(id) && !this.#responses.has(id)) this.#set(id, shareIn(value));
        }
    } finally {
      if (this.#deleted === deleted) this.#deleted = undefined;
    }
  }

  #forgetExpired(of: string): void {
    const now = this.#options.clock.utcMs();
    for (const [id, { owner, expiresMs }] of this.#responses) if (owner === of && expiresMs <= now) this.#remove(id);
  }

  #isBeyond(share: WrappedShare): boolean {
    return this.#of(share.owner) + roomOf(share) > this.#bytesMax;
  }

  #of(owner: string): number {
    return this.#bytes.get(owner) ?? 0;
  }
}

const roomOf = ({ bodyBytes }: WrappedShare): number => bodyBytes + overheadBytes;
