import { createHash, randomInt, timingSafeEqual } from 'node:crypto';
import type { RecordClock } from '@transitd/process';
import { JsonRecord, type Store, StoreError } from '@transitd/storage-fsm';
import { z } from 'zod';
import { ReplicationError } from '../replication-error.ts';
import { writeLocal } from './local-record.ts';

/** How long an operation token is valid, in milliseconds. */
export const operationTokenMs = 30 * 60_000;

/** The same length as a token of this server, so that one pad can mask both. */
const prefix = 'dr.';
const randomCharacters = 23;
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const pattern = /^dr\.[0-9A-Za-z]{23}$/;

/** Returns whether the text has the form of an operation token. */
export const isOperationToken = (text: string): boolean => pattern.test(text);

/** The hash of the token. The path begins with a local prefix, so the record is not replicated. */
const tokenRecord = new JsonRecord(
  'core/replication/operation-token',
  z.object({ hash: z.string().length(64), expiresMs: z.number() }),
);
const { path } = tokenRecord;

/**
 * The operation token of a disaster-recovery secondary, where the tokens of clients are those of the primary. It is created with enough key
 * shares. It authorizes operations on the cluster, never on its data. At most one exists; it ends with the first change that it authorizes,
 * or after {@link operationTokenMs}. All methods are for the active node.
 */
export class OperationTokens {
  readonly #store: Pick<Store, 'get' | 'commit'>;
  readonly #clock: Pick<RecordClock, 'dueMs' | 'utcMs'>;
  /** Hashes of the tokens with which a change is being made, such as a promotion that waits. */
  readonly #changing = new Set<string>();
  /** Hashes of the tokens with which a change was made. */
  readonly #used = new Set<string>();

  /** @param store - the records in plaintext */
  constructor(store: Pick<Store, 'get' | 'commit'>, clock: Pick<RecordClock, 'dueMs' | 'utcMs'>) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Creates a token, which ends the one before it. @throws StoreError */
  async issue(): Promise<string> {
    const random = Array.from({ length: randomCharacters }, () => alphabet[randomInt(alphabet.length)]);
    const token = prefix + random.join('');
    const expiresMs = this.#clock.dueMs() + operationTokenMs;
    await writeLocal(this.#store, tokenRecord.written({ hash: hashOf(token), expiresMs }));
    return token;
  }

  /**
   * Runs a task that a token authorizes. A task that changes something uses up the token when it ends; until then, the token authorizes
   * reading, so that an operator can watch a promotion that waits. A task that is refused changes nothing and does not use it up.
   * @throws ReplicationError `operation_token` if the token is not valid, or a change is being made with it; errors of `task`
   */
  async use<T>(token: string, use: 'reads' | 'changes', task: () => Promise<T>): Promise<T> {
    await this.#require(token);
    const hash = hashOf(token);
    if (this.#used.has(hash)) throw invalid(); // by another request, while the record was read
    if (use === 'reads') return task();
    if (this.#changing.has(hash))
      throw new ReplicationError('operation_token', 'a change is being made with this operation token: wait until it ends');
    this.#changing.add(hash);
    try {
      const result = await task();
      await this.#forget(hash);
      return result;
    } catch (error) {
      if (error instanceof StoreError && error.code === 'outcome_unknown') await this.#forget(hash);
      throw error;
    } finally {
      this.#changing.delete(hash);
    }
  }

  /** Ends a token. @throws ReplicationError `operation_token`; StoreError */
  async delete(token: string): Promise<void> {
    const isDeleted = await this.#deleteAt(await this.#require(token));
    if (!isDeleted) await this.delete(token); // another one may have replaced it
  }

  /** Returns the revision of the record of a valid token; one that a later release has issued is not valid here. */
  async #require(token: string): Promise<number> {
    const stored = await this.#store.get(path);
    const record = stored && tokenRecord.decoded(stored.value);
    const hash = hashOf(token);
    const isValid = record !== undefined && isOperationToken(token) && isSame(record.hash, hash);
    if (stored === undefined || !isValid || this.#clock.utcMs() >= record.expiresMs || this.#used.has(hash)) throw invalid();
    return stored.revision;
  }

  /** Deletes the record of a token that was used. If that fails, this node refuses it until it restarts, and others until it expires. */
  async #forget(hash: string): Promise<void> {
    this.#used.add(hash);
    try {
      await this.#deleteRecordOf(hash);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    }
  }

  async #deleteRecordOf(hash: string): Promise<void> {
    const stored = await this.#store.get(path);
    if (stored === undefined || tokenRecord.decoded(stored.value)?.hash !== hash) return;
    if (!(await this.#deleteAt(stored.revision))) await this.#deleteRecordOf(hash);
  }

  /** Deletes the record, unless it has another revision; returns whether it did. */
  async #deleteAt(revision: number): Promise<boolean> {
    return (await writeLocal(this.#store, { path, value: null }, revision)) !== undefined;
  }
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');
const isSame = (one: string, other: string): boolean => timingSafeEqual(Buffer.from(one), Buffer.from(other));
const invalid = (): ReplicationError => new ReplicationError('operation_token', 'the operation token is not valid');
