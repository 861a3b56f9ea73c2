import type { Store, Transaction } from '@transitd/storage-fsm';
import { AccessError, invalidRequest } from '../errors.ts';
import { decodeJson, encodeJson } from '../json-record.ts';
import { wrappingPolicy } from '../policy/policies.ts';
import { accessorIdOf, newAccessor, newToken, tokenIdOf } from './token.ts';
import type { LoadedToken } from './token-cache.ts';
import { wrappedPath } from './token-paths.ts';
import type { TokenRecord } from './token-record.ts';
import { combined, deleteTransaction, issueTransaction, isWrapping } from './token-transactions.ts';
import type { Tokens } from './tokens.ts';

/** An answer that lies ready for whoever shows the token. Times are milliseconds since the epoch. */
export interface Wrapped {
  readonly status: number;
  /** The whole body, as it would have been sent. */
  readonly body: string;
  /** The path that was asked. */
  readonly path: string;
  readonly createdMs: number;
  readonly ttlS: number;
  /** Accessor of the token that the answer shows; empty for none. */
  readonly wrappedAccessor: string;
}

/** What is said of a wrapped answer instead of it. */
export interface WrapInfo extends Pick<Wrapped, 'path' | 'createdMs' | 'ttlS' | 'wrappedAccessor'> {
  readonly token: string;
  readonly accessor: string;
}

export interface WrappingOptions {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly now: () => number;
  /** The longest that an answer may wait, in seconds. */
  readonly ttlSMax: number;
}

const example: Wrapped = { status: 0, body: '', path: '', createdMs: 0, ttlS: 0, wrappedAccessor: '' };
const attemptsMax = 5;

/**
 * Answers that are fetched with a token that is good for one look. They lie under the keyed hash of that token, with the token, and go
 * with it: one entry of the log writes both, one deletes both, and only whose entry that is gets the answer.
 */
export class Wrapping {
  readonly #store: Store;
  readonly #tokens: Tokens;
  readonly #now: () => number;
  readonly #ttlSMax: number;

  constructor({ store, tokens, now, ttlSMax }: WrappingOptions) {
    this.#store = store;
    this.#tokens = tokens;
    this.#now = now;
    this.#ttlSMax = ttlSMax;
  }

  /** Refuses a time that no answer may wait, before anything is done. @throws AccessError `invalid_request` */
  checkTtl(ttlS: number): void {
    if (ttlS > this.#ttlSMax) throw invalidRequest(`a wrapped answer waits at most ${this.#ttlSMax}s`);
  }

  /** @throws AccessError `too_many_conflicts`; StoreError, `too_large` among them */
  async wrap(answer: Omit<Wrapped, 'createdMs'>): Promise<WrapInfo> {
    const { info, transaction } = await this.#wrapped({ ...answer, createdMs: this.#now() });
    if ((await this.#store.commit(transaction)).outcome === 'committed') return info;
    throw new AccessError('too_many_conflicts', 'the answer could not be wrapped');
  }

  /** What is wrapped, left where it is; undefined when the token is no wrapping token. @throws StoreError */
  async look(token: string): Promise<Wrapped | undefined> {
    return (await this.#find(token))?.wrapped;
  }

  /** What is wrapped, for the only time; undefined when the token is no wrapping token, any more. @throws AccessError `too_many_conflicts`; StoreError */
  async unwrap(token: string): Promise<Wrapped | undefined> {
    return this.#consume(token, async ({ wrapped }) => ({ result: wrapped }));
  }

  /** The same answer under another token, for as long again; undefined when the token is none. @throws AccessError `too_many_conflicts`; StoreError */
  async rewrap(token: string): Promise<WrapInfo | undefined> {
    return this.#consume(token, async ({ wrapped }) => {
      const { info, transaction } = await this.#wrapped({ ...wrapped, createdMs: this.#now() });
      return { result: info, with: transaction };
    });
  }

  /** Deletes what the token wraps, combined with what `next` writes: it gets it if that is committed, and otherwise looks again. */
  async #consume<T>(
    token: string,
    next: (found: { readonly wrapped: Wrapped }) => Promise<{ readonly result: T; readonly with?: Transaction }>,
  ): Promise<T | undefined> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const found = await this.#find(token);
      if (found === undefined) return undefined;
      const { result, with: more } = await next(found);
      const transaction = combined([deleteTransaction(found.token), ...(more === undefined ? [] : [more])]);
      if ((await this.#store.commit(transaction)).outcome === 'committed') return result;
    }
    throw new AccessError('too_many_conflicts', 'the wrapping token changed too often in the meantime; nothing was done');
  }

  async #find(shown: string): Promise<{ readonly token: LoadedToken; readonly wrapped: Wrapped } | undefined> {
    const token = await this.#tokens.find(shown);
    if (token === undefined || !isWrapping(token.record)) return undefined;
    const stored = await this.#store.get(wrappedPath(token.id));
    return stored && { token, wrapped: decodeJson(stored.value, example) };
  }

  async #wrapped(wrapped: Wrapped): Promise<{ readonly info: WrapInfo; readonly transaction: Transaction }> {
    const [token, accessor] = [newToken(), newAccessor()];
    const key = await this.#tokens.key();
    const id = tokenIdOf(key, token);
    const made = { id, record: wrappingRecord(wrapped, accessor), accessorId: accessorIdOf(key, accessor) };
    const writes = [{ path: wrappedPath(id), value: encodeJson(wrapped) }];
    const { path, createdMs, ttlS, wrappedAccessor } = wrapped;
    return {
      info: { token, accessor, path, createdMs, ttlS, wrappedAccessor },
      transaction: issueTransaction(made, { conditions: [], writes }),
    };
  }
}

/** A token for one use, which grants nothing: any use but fetching the answer is its last. */
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
  mount: '',
  source: '',
  groups: [],
});
