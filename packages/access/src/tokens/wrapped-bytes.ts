import { type Changes, type Store, StoreError } from '@transitd/storage-fsm';
import { invalidRequest } from '../values/errors.ts';
import { wrappedPath } from './token-paths.ts';

/** Shorter responses are not counted: they need no more room than tokens. */
const smallBytes = 4 * 1024;
/** Bytes of the stored responses of one owner. */
const bytesMaxDefault = 64 * 1024 * 1024;
/** Responses that are counted, of all owners; the oldest are forgotten first. */
const responsesMax = 65_536;

interface Response {
  readonly owner: string;
  readonly bytes: number;
  readonly expiresMs: number;
  isStored: boolean;
}

/**
 * Counts the long wrapped responses of each owner until they are fetched, revoked or expire, so that a caller with few rights cannot fill
 * the disk with them. In memory of the active node: another node that becomes active counts those from then on.
 */
export class WrappedBytes {
  readonly #now: () => number;
  readonly #bytesMax: number;
  /** By the id of the wrapping token, oldest first. */
  readonly #responses = new Map<string, Response>();
  readonly #bytes = new Map<string, number>();
  readonly #unwatch: () => void;

  constructor(store: Store, now: () => number, bytesMax = bytesMaxDefault) {
    this.#now = now;
    this.#bytesMax = bytesMax;
    this.#unwatch = store.watch(wrappedPath(''), (changes) => this.#changed(changes));
  }

  /** Counts a response, before it is stored. @throws AccessError `invalid_request` if its owner has no room for it */
  add(id: string, { owner, bytes, expiresMs }: Omit<Response, 'isStored'>): void {
    if (bytes <= smallBytes) return;
    if (this.#isBeyond(owner, bytes)) this.#forgetExpired(owner);
    if (this.#isBeyond(owner, bytes))
      throw invalidRequest(
        `the response is not wrapped, because those of this caller would take more than ${this.#bytesMax} bytes: ` +
          'unwrap some of them, or wait until they expire. The request itself was executed',
      );
    this.#set(id, { owner, bytes, expiresMs });
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
      if (!mayBeStored) this.remove(id);
    }
  }

  #set(id: string, { owner, bytes, expiresMs }: Omit<Response, 'isStored'>): void {
    const [oldest] = this.#responses.keys();
    if (this.#responses.size >= responsesMax && oldest !== undefined) this.remove(oldest);
    this.#responses.set(id, { owner, bytes, expiresMs, isStored: false });
    this.#bytes.set(owner, this.#of(owner) + bytes);
  }

  remove(id: string): void {
    const response = this.#responses.get(id);
    if (response === undefined) return;
    const { owner, bytes } = response;
    this.#responses.delete(id);
    const left = this.#of(owner) - bytes;
    if (left > 0) this.#bytes.set(owner, left);
    else this.#bytes.delete(owner);
  }

  close(): void {
    this.#unwatch();
  }

  /** The first change of a record stores the response; the next one deletes it. */
  #changed(changes: Changes): void {
    if (changes === 'everything') {
      this.#responses.clear();
      this.#bytes.clear();
      return;
    }
    for (const { path } of changes) {
      const id = path.slice(wrappedPath('').length);
      const response = this.#responses.get(id);
      if (response?.isStored === true) this.remove(id);
      else if (response !== undefined) response.isStored = true;
    }
  }

  #forgetExpired(of: string): void {
    const now = this.#now();
    for (const [id, { owner, expiresMs }] of this.#responses) if (owner === of && expiresMs <= now) this.remove(id);
  }

  #isBeyond(owner: string, bytes: number): boolean {
    return this.#of(owner) + bytes > this.#bytesMax;
  }

  #of(owner: string): number {
    return this.#bytes.get(owner) ?? 0;
  }
}
