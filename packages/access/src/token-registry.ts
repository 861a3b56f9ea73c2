import type { Store, Transaction } from '@transitd/storage-fsm';
import { AccessError, invalidRequest } from './errors.ts';
import type { Policies } from './policy/policies.ts';
import type { Principal } from './principal.ts';
import { isTokenShaped, newAccessor, newToken } from './token.ts';
import type { LoadedToken } from './token-cache.ts';
import { accessorIdOf, tokenIdOf } from './token-key.ts';
import { renewed, used } from './token-lifetime.ts';
import { accessorPath, accessorPrefix, childrenOf, parseChildPath, tokenPath } from './token-paths.ts';
import { decodeAccessorRecord, decodeTokenRecord, type TokenRecord } from './token-record.ts';
import { type Creator, newTokenRecord, type TokenRequest } from './token-request.ts';
import { sweepOrphaned, sweepOverdue } from './token-sweep.ts';
import { createTransaction, deleteTransaction, rewriteTransaction, together } from './token-transactions.ts';
import type { Tokens } from './tokens.ts';

export interface TokenRegistryOptions {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly policies: Policies;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** By what a request names a token: itself, its id as a principal has it, or its accessor. */
export type TokenName = { readonly token: string } | { readonly id: string } | { readonly accessor: string };

/** A token, made or given a longer life. */
export interface Granted {
  readonly record: TokenRecord;
  /** Seconds from now; 0 when it does not expire. */
  readonly ttlS: number;
  readonly warnings: readonly string[];
}

/** A change that meets one by someone else starts over from fresh records, this often at most. */
const attemptsMax = 5;
/** Children that become orphans in one transaction. */
const childrenPerTransaction = 200;

/**
 * Makes tokens, shows them, lengthens their lives and ends them. Every change is one conditional transaction, and in force for
 * every token below when it resolves; what it leaves lying is for the sweep.
 */
export class TokenRegistry {
  readonly #store: Store;
  readonly #tokens: Tokens;
  readonly #policies: Policies;
  readonly #now: () => number;
  #sweepCursor = '';

  constructor({ store, tokens, policies, now }: TokenRegistryOptions) {
    this.#store = store;
    this.#tokens = tokens;
    this.#policies = policies;
    this.#now = now;
  }

  /**
   * Makes a token. It is shown this once.
   * @throws AccessError `invalid_request`, `bad_token` when the creator's own token has gone, `too_many_conflicts`; StoreError
   */
  async create(
    request: TokenRequest,
    { principal, ...where }: { readonly principal: Principal } & Pick<Creator, 'privileged' | 'path' | 'makesOrphans'>,
  ): Promise<Granted & { readonly token: string }> {
    const token = request.id === undefined || request.id === '' ? newToken() : request.id;
    return this.#attempt(async () => {
      const creator = await this.#tokens.findById(principal.id);
      if (creator === undefined) throw new AccessError('bad_token', 'bad token');
      const made = { now: this.#now(), accessor: newAccessor() };
      const { record, warnings } = newTokenRecord(request, { id: creator.id, record: creator.record, ...where }, made);
      const key = await this.#tokens.key();
      const [id, accessorId] = [tokenIdOf(key, token), accessorIdOf(key, record.accessor)];
      if (request.id === token && (await this.#store.get(tokenPath(id))) !== undefined)
        throw invalidRequest('cannot create a token with a duplicate ID');
      const granted = { token, record, ttlS: record.ttlS, warnings: [...warnings, ...(await this.#missing(record.policies))] };
      return (await this.#commit(createTransaction({ id, record, accessorId }, creator))) ? granted : undefined;
    });
  }

  /** A good token; undefined for any other. @throws StoreError */
  async find(name: TokenName): Promise<LoadedToken | undefined> {
    if ('token' in name) return this.#tokens.find(name.token);
    const id = 'id' in name ? name.id : await this.#idOf(name.accessor);
    return id === undefined ? undefined : this.#tokens.findById(id);
  }

  /** What another token may do: who it stands for; undefined when it is not good. */
  async principal(name: TokenName): Promise<Principal | undefined> {
    const found = await this.find(name);
    return found && this.#tokens.principalOf(found);
  }

  /**
   * Gives a token a longer, or a shorter, life.
   * @param incrementS - seconds from now; 0 for as long as it got first
   * @returns nothing when there is no such token
   * @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError
   */
  async renew(name: TokenName, incrementS: number): Promise<Granted | undefined> {
    const granted = await this.#attempt(async () => {
      const found = await this.find(name);
      if (found === undefined) return 'none';
      const granted = renewed(found.record, { incrementS, now: this.#now() });
      return (await this.#commit(rewriteTransaction(found, granted.record))) ? granted : undefined;
    });
    return granted === 'none' ? undefined : granted;
  }

  /**
   * Counts one request of a token of limited uses. Returns whether it had one left: the request goes on with the principal from
   * before, since after the last one the token is good no more.
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  spend({ id }: Principal): Promise<boolean> {
    return this.#attempt(async () => {
      const found = await this.#tokens.findById(id);
      if (found === undefined) return false;
      return (await this.#commit(rewriteTransaction(found, used(found.record, this.#now())))) ? true : undefined;
    });
  }

  /** Ends a token and everything below it. Returns whether there was one. @throws AccessError `too_many_conflicts`; StoreError */
  revoke(name: TokenName): Promise<boolean> {
    return this.#attempt(async () => {
      const found = await this.find(name);
      if (found === undefined) return false;
      return (await this.#commit(deleteTransaction(found))) ? true : undefined;
    });
  }

  /**
   * Ends a token and makes its children orphans. One that is made in this very moment goes with it.
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  async revokeAlone(name: TokenName): Promise<boolean> {
    const found = await this.find(name);
    if (found === undefined) return false;
    await this.#attempt(async () => ((await this.#freeChildren(found.id)) ? true : undefined));
    return this.revoke({ id: found.id });
  }

  /** Accessors, sorted; those of tokens below a revoked one go with the next sweep. @throws StoreError */
  async accessors(): Promise<string[]> {
    const accessors: string[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page = await this.#store.range({ prefix: accessorPrefix, ...(after !== '' && { after }) });
      for (const { value } of page.records) accessors.push(decodeAccessorRecord(value).accessor);
      after = page.next;
    }
    return accessors.sort();
  }

  /**
   * Deletes what is due: tokens whose time has come, and those whose parent is gone. Only the active node calls it, from time to
   * time. @param limit - records looked at, about @returns tokens deleted
   */
  async sweep(limit: number): Promise<number> {
    const key = await this.#tokens.key();
    const overdue = await sweepOverdue(this.#store, { key, now: this.#now(), limit });
    const { cursor, removed } = await sweepOrphaned(this.#store, { key, cursor: this.#sweepCursor, limit });
    this.#sweepCursor = cursor;
    return overdue + removed;
  }

  /** Makes every child of a token an orphan; false when one of them changed meanwhile. */
  async #freeChildren(id: string): Promise<boolean> {
    for (;;) {
      const { records } = await this.#store.range({ prefix: childrenOf(id), limit: childrenPerTransaction });
      if (records.length === 0) return true;
      const key = await this.#tokens.key();
      const transactions: Transaction[] = [];
      for (const { path } of records) {
        const { child } = parseChildPath(path);
        const stored = await this.#store.get(tokenPath(child));
        if (stored === undefined) {
          transactions.push({ conditions: [], writes: [{ path, value: null }] });
          continue;
        }
        const record = decodeTokenRecord(stored.value);
        const token = { id: child, record, revision: stored.revision, accessorId: accessorIdOf(key, record.accessor) };
        transactions.push(rewriteTransaction(token, { ...record, parent: '', generation: 0 }));
      }
      if (!(await this.#commit(together(transactions)))) return false;
    }
  }

  async #idOf(accessor: string): Promise<string | undefined> {
    if (!isTokenShaped(accessor)) return undefined;
    const stored = await this.#store.get(accessorPath(accessorIdOf(await this.#tokens.key(), accessor)));
    return stored && decodeAccessorRecord(stored.value).token;
  }

  async #missing(names: readonly string[]): Promise<string[]> {
    const warnings: string[] = [];
    for (const name of names) if (!(await this.#policies.exists(name))) warnings.push(`Policy "${name}" does not exist`);
    return warnings;
  }

  async #commit(transaction: Transaction): Promise<boolean> {
    return (await this.#store.commit(transaction)).outcome === 'committed';
  }

  /** Runs `step` until it says something else than undefined. */
  async #attempt<T>(step: () => Promise<T | undefined>): Promise<T> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const result = await step();
      if (result !== undefined) return result;
    }
    throw new AccessError('too_many_conflicts', 'the token changed too often in the meantime; nothing was done');
  }
}
