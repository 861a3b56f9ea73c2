import type { RecordClock } from '@transitd/process';
import { type Store, type Transaction, untilCommitted } from '@transitd/storage-fsm';
import { wrappingPolicy } from '../policy/policies.ts';
import { AccessError, conflict, invalidRequest } from '../values/errors.ts';
import { decodeJson, encodeJson } from '../values/json-record.ts';
import { accessorIdOf, newAccessor, newToken, tokenIdOf } from './token.ts';
import type { LoadedToken } from './token-cache.ts';
import type { TokenDates } from './token-dates.ts';
import { wrappedPath } from './token-paths.ts';
import type { TokenRecord } from './token-record.ts';
import { combined, deleteTransaction, issueTransaction, isWrapping } from './token-transactions.ts';
import type { Tokens } from './tokens.ts';
import { WrappedBytes, type WrappedShare } from './wrapped-bytes.ts';

/** A stored response that its wrapping token can fetch once. Times are in milliseconds since the epoch. */
export interface Wrapped {
  readonly status: number;
  /** The whole body of the response. */
  readonly body: string;
  /** Path of the request. */
  readonly path: string;
  readonly createdMs: number;
  readonly ttlS: number;
  /** Accessor of the token in the response; empty for none. */
  readonly wrappedAccessor: string;
  /** The caller to whose share it counts. */
  readonly owner: string;
}

/** Sent in place of a wrapped response. */
export interface WrapInfo extends Pick<Wrapped, 'path' | 'createdMs' | 'ttlS' | 'wrappedAccessor'> {
  readonly token: string;
  readonly accessor: string;
}

interface WrappingOptions {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly dates: Pick<TokenDates, 'created' | 'dispute'>;
  readonly clock: RecordClock;
  /** Longest TTL of a wrapped response, in seconds. */
  readonly ttlSMax: number;
  /** Bytes of the stored responses of one owner; 64 MiB when absent. */
  readonly ownerBytesMax?: number;
}

/** The body comes last: the rest of a record is read without it. */
const example: Wrapped = { owner: '', status: 0, path: '', createdMs: 0, ttlS: 0, wrappedAccessor: '', body: '' };

/**
 * Response wrapping: stores a response that a single-use token can fetch. One log entry writes the response and the token, and one
 * deletes both. Only the request whose entry deletes them gets the response.
 */
export class Wrapping {
  readonly #store: Store;
  readonly #tokens: Tokens;
  readonly #dates: WrappingOptions['dates'];
  readonly #clock: RecordClock;
  readonly #ttlSMax: number;
  readonly #bytes: WrappedBytes;

  constructor({ store, tokens, dates, clock, ttlSMax, ownerBytesMax }: WrappingOptions) {
    this.#store = store;
    this.#tokens = tokens;
    this.#dates = dates;
    this.#clock = clock;
    this.#ttlSMax = ttlSMax;
    this.#bytes = new WrappedBytes({ store, clock, shareIn, bytesMax: ownerBytesMax });
  }

  /** Refuses a TTL above the maximum, before the request is executed. @throws AccessError `invalid_request` */
  checkTtl(ttlS: number): void {
    if (ttlS > this.#ttlSMax) throw invalidRequest(`a wrapping TTL is at most ${this.#ttlSMax}s`);
  }

  /**
   * Wraps a response.
   * @throws AccessError `invalid_request` if the owner has no room, `too_many_conflicts`; StoreError, `too_large` among them
   */
  async wrap(answer: Omit<Wrapped, 'createdMs'>): Promise<WrapInfo> {
    const { id, info, transaction, committed } = await this.#wrapped(answer);
    const { createdMs, ttlS } = info;
    const bodyBytes = Buffer.byteLength(answer.body);
    this.#bytes.add(id, { owner: answer.owner, bodyBytes, expiresMs: createdMs + ttlS * 1000 });
    if (await this.#bytes.whileStoring(id, () => this.#commits(transaction))) {
      committed();
      return info;
    }
    throw new AccessError('too_many_conflicts', 'the response could not be wrapped');
  }

  /** Settles when the responses that another node has wrapped are counted, once this node has wrapped one. */
  get counted(): Promise<void> {
    return this.#bytes.reading;
  }

  /** Stops watching the store. */
  close(): void {
    this.#bytes.close();
  }

  /**
   * Returns the wrapped response without fetching it; undefined when the token is not a valid wrapping token.
   * @throws StoreError
   */
  async lookUp(token: string): Promise<Wrapped | undefined> {
    return (await this.#find(token))?.wrapped;
  }

  /**
   * Fetches the wrapped response and deletes it; undefined when the token is not a valid wrapping token.
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  async unwrap(token: string): Promise<Wrapped | undefined> {
    return this.#consume(token, async ({ wrapped }) => ({ result: wrapped }));
  }

  /**
   * Moves the response to a new token with the same TTL; undefined when the token is not a valid wrapping token.
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  async rewrap(token: string): Promise<WrapInfo | undefined> {
    return this.#consume(token, async ({ token: { id: before }, wrapped }) => {
      const { id, info, transaction, committed } = await this.#wrapped(wrapped);
      this.#bytes.copy(before, id);
      return { id, result: info, with: transaction, committed };
    });
  }

  /**
   * Deletes the response in one transaction with the writes of `next`, and returns the result of `next` after the commit. A conflict
   * starts a new attempt.
   */
  async #consume<T>(
    token: string,
    next: (found: { readonly token: LoadedToken; readonly wrapped: Wrapped }) => Promise<{
      /** Of a new wrapping token. */
      readonly id?: string;
      readonly result: T;
      readonly with?: Transaction;
      readonly committed?: () => void;
    }>,
  ): Promise<T | undefined> {
    const attempt = async () => {
      const found = await this.#find(token);
      if (found === undefined) return { result: undefined };
      const { id = '', result, with: more, committed } = await next(found);
      const transaction = combined([deleteTransaction(found.token), ...(more === undefined ? [] : [more])]);
      if (!(await this.#bytes.whileStoring(id, () => this.#commits(transaction)))) return undefined;
      committed?.();
      return { result };
    };
    return (await untilCommitted(attempt, () => conflict('the wrapping token'))).result;
  }

  async #commits(transaction: Transaction): Promise<boolean> {
    return (await this.#store.commit(transaction)).outcome === 'committed';
  }

  async #find(shown: string): Promise<{ readonly token: LoadedToken; readonly wrapped: Wrapped } | undefined> {
    const token = await this.#tokens.find(shown);
    if (token === undefined || !isWrapping(token.record)) return undefined;
    const stored = await this.#store.get(wrappedPath(token.id));
    return stored && { token, wrapped: decodeJson(stored.value, example) };
  }

  /** Dates a response and wraps it. Call `committed` once the transaction has committed. */
  async #wrapped(answer: Omit<Wrapped, 'createdMs'>): Promise<{
    readonly id: string;
    readonly info: WrapInfo;
    readonly transaction: Transaction;
    readonly committed: () => void;
  }> {
    const dispute = this.#dates.dispute();
    const { body, ...rest } = answer;
    const wrapped: Wrapped = { ...rest, createdMs: this.#clock.utcMs(), body };
    const [token, accessor] = [newToken(), newAccessor()];
    const key = await this.#tokens.key();
    const id = tokenIdOf(key, token);
    const made = { id, record: wrappingRecord(wrapped, accessor), accessorId: accessorIdOf(key, accessor) };
    const writes = [{ path: wrappedPath(id), value: encodeJson(wrapped) }];
    const { path, createdMs, ttlS, wrappedAccessor } = wrapped;
    return {
      id,
      info: { token, accessor, path, createdMs, ttlS, wrappedAccessor },
      transaction: issueTransaction(made, { conditions: [], writes }),
      committed: () => this.#dates.created(id, made.record, dispute),
    };
  }
}

const bodyMember = ',"body":"';

/**
 * Reads the share of a stored response from the members before its body. The quotation marks in a text are escaped, so no text contains
 * the beginning of the body's member.
 * @throws AccessError `record_unreadable`
 */
function shareIn(stored: Uint8Array): WrappedShare {
  const record = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  const at = record.indexOf(bodyMember);
  const head = Buffer.concat([record.subarray(0, Math.max(at, 0)), Buffer.from(`${bodyMember}"}`)]);
  const { owner, createdMs, ttlS } = decodeJson(head, example);
  return { owner, bodyBytes: record.length - head.length, expiresMs: createdMs + ttlS * 1000 };
}

/** Returns the record of a single-use token that grants nothing. Any use other than unwrapping is also its last use. */
const wrappingRecord = ({ path, createdMs, ttlS }: Wrapped, accessor: string): TokenRecord => ({
  type: 'service',
  accessor,
  policies: [wrappingPolicy],
  displayName: 'wrapping',
  meta: {},
  path,
  createdMs,
  ttlS,
  expiresMs: createdMs + ttlS * 1000,
  explicitMaxTtlS: ttlS,
  maxTtlS: 0,
  periodS: 0,
  renewable: false,
  parent: '',
  parentAccessorId: '',
  generation: 0,
  usesLeft: 1,
  renewedMs: 0,
  role: '',
  boundCidrs: [],
  boundCertificate: '',
  mount: '',
  source: '',
  groups: [],
});
