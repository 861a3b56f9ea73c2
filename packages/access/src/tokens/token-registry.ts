import type { Store, Transaction } from '@transitd/storage-fsm';
import { AccessError, invalidRequest } from '../errors.ts';
import type { Policies } from '../policy/policies.ts';
import { runInSlices, sorted } from '../scheduling/steps.ts';
import { Turns } from '../scheduling/turns.ts';
import { isBatchToken } from './batch-token.ts';
import { type LoginGrant, loginRecord } from './login-grant.ts';
import type { Principal } from './principal.ts';
import { rootRecord } from './root-token.ts';
import { accessorIdOf, isTokenShaped, newAccessor, newToken, tokenIdOf } from './token.ts';
import type { LoadedToken } from './token-cache.ts';
import { defaultLimits, renewed, type TokenLimits, withOneUseLess } from './token-lifetime.ts';
import { accessorPath, accessorPrefix, childrenOf, parseChildPath, tokenPath } from './token-paths.ts';
import { decodeAccessorRecord, decodeTokenRecord, type TokenRecord } from './token-record.ts';
import { renewable } from './token-renewal.ts';
import { type Creator, newTokenRecord, type TokenRequest } from './token-request.ts';
import { type StoredRole, TokenRoles } from './token-roles.ts';
import { type SweepResult, sweepOrphaned, sweepOverdue } from './token-sweep.ts';
import {
  combined,
  createTransaction,
  deleteTransaction,
  issueTransaction,
  rewriteTransaction,
  type StoredToken,
  spendTransaction,
} from './token-transactions.ts';
import type { Tokens } from './tokens.ts';

export interface TokenRegistryOptions {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly policies: Policies;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** The same for deletions; `now` when absent. */
  readonly dueNow?: () => number;
  readonly limits?: TokenLimits;
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
  readonly roles: TokenRoles;
  readonly limits: TokenLimits;
  readonly #store: Store;
  readonly #tokens: Tokens;
  readonly #policies: Policies;
  readonly #now: () => number;
  readonly #dueNow: () => number;
  #dueCursor = '';
  #orphanCursor = '';
  /** By the token's id. */
  readonly #turns = new Turns();

  constructor({ store, tokens, policies, now, dueNow = now, limits = defaultLimits }: TokenRegistryOptions) {
    this.roles = new TokenRoles({ store });
    this.limits = limits;
    this.#store = store;
    this.#tokens = tokens;
    this.#policies = policies;
    this.#now = now;
    this.#dueNow = dueNow;
  }

  /**
   * Makes a token. It is shown this once.
   * @param role - name of the role by which it is made
   * @throws AccessError `invalid_request`, `bad_token` when the creator's own token has gone, `too_many_conflicts`; StoreError
   */
  async create(
    request: TokenRequest,
    {
      principal,
      role: roleName,
      ...where
    }: { readonly principal: Principal; readonly role?: string } & Pick<Creator, 'privileged' | 'path' | 'makesOrphans'>,
  ): Promise<Granted & { readonly token: string }> {
    if (principal.record.type === 'batch') throw invalidRequest('batch tokens cannot create more tokens');
    // Even when this very request was its last use, and the token is not to be found any more.
    if (principal.record.usesLeft !== 0) throw invalidRequest('restricted use token cannot generate child tokens');
    const token = request.id === undefined || request.id === '' ? newToken() : request.id;
    return this.#attempt(async () => {
      const creator = await this.#tokens.findById(principal.id);
      if (creator === undefined) throw new AccessError('bad_token', 'bad token');
      const role = await this.#role(roleName);
      const creation = { now: this.#now(), accessor: newAccessor(), limits: this.limits, role: role?.role };
      const { record, warnings: some } = newTokenRecord(request, { ...creator, ...where }, creation);
      const warnings = [...some, ...(await this.#missingPolicyWarnings(record.policies))];
      if (record.type === 'batch') {
        const sealed = await this.#tokens.sealBatch(record);
        // Nothing is written of it that could be conditional on its creator.
        const stillGood = (await this.#tokens.findById(principal.id)) !== undefined;
        return stillGood ? { token: sealed, record, ttlS: record.ttlS, warnings } : undefined;
      }
      const key = await this.#tokens.key();
      const [id, accessorId] = [tokenIdOf(key, token), accessorIdOf(key, record.accessor)];
      if (request.id === token && (await this.#store.get(tokenPath(id))) !== undefined)
        throw invalidRequest('cannot create a token with a duplicate ID');
      const granted = { token, record, ttlS: record.ttlS, warnings };
      const created = createTransaction({ id, record, accessorId }, creator);
      const conditions = role === undefined ? created.conditions : [...created.conditions, role.condition];
      return (await this.#commit({ ...created, conditions })) ? granted : undefined;
    });
  }

  /**
   * Makes the token of a login, with everything that the login writes beside it. It is shown this once.
   * @returns nothing when something that the login rests on has changed meanwhile
   * @throws AccessError `invalid_request`; StoreError
   */
  async issue(login: LoginGrant): Promise<(Granted & { readonly token: string }) | undefined> {
    const { record, warnings: some } = loginRecord(login, { now: this.#now(), accessor: newAccessor(), limits: this.limits });
    const granted = { record, ttlS: record.ttlS, warnings: [...some, ...(await this.#missingPolicyWarnings(record.policies))] };
    const { conditions, writes } = login;
    if (record.type === 'batch') {
      const token = await this.#tokens.sealBatch(record);
      return (await this.#commit({ conditions, writes })) ? { ...granted, token } : undefined;
    }
    const token = newToken();
    const key = await this.#tokens.key();
    const made = { id: tokenIdOf(key, token), record, accessorId: accessorIdOf(key, record.accessor) };
    return (await this.#commit(issueTransaction(made, { conditions, writes }))) ? { ...granted, token } : undefined;
  }

  /**
   * Makes a root token that nobody's token stands above: whoever calls this has seen that it may be. It is shown this once.
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  createRoot(): Promise<{ readonly token: string; readonly record: TokenRecord }> {
    return this.#attempt(async () => {
      const [token, record] = [newToken(), rootRecord(this.#now())];
      const key = await this.#tokens.key();
      const made = { id: tokenIdOf(key, token), record, accessorId: accessorIdOf(key, record.accessor) };
      return (await this.#commit(issueTransaction(made, { conditions: [], writes: [] }))) ? { token, record } : undefined;
    });
  }

  /** A good token; undefined for any other. @throws StoreError */
  async find(name: TokenName): Promise<LoadedToken | undefined> {
    if ('token' in name) return this.#tokens.find(name.token);
    const id = 'id' in name ? name.id : await this.#idOfAccessor(name.accessor);
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
    const granted = await this.#change(name, 'renewed', async (found) => {
      if (found === undefined) return 'none';
      const { record, ttlS, conditions } = await renewable(found.record, {
        store: this.#store,
        roles: this.roles,
        limits: this.limits,
      });
      const granted = renewed(record, { incrementS, ttlS, now: this.#now(), maxTtlS: this.limits.maxTtlS });
      const { writes, conditions: unchanged } = rewriteTransaction(found, granted.record);
      return (await this.#commit({ conditions: [...unchanged, ...conditions], writes })) ? granted : undefined;
    });
    return granted === 'none' ? undefined : granted;
  }

  /**
   * Counts one request of a token of limited uses.
   * @returns with whom the request goes on, since after the last one the token is good no more: the record as it was written, and
   * the policies as they are now; nothing when no use was left
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  async spend(principal: Principal): Promise<Principal | undefined> {
    const record = await this.#change({ id: principal.id }, 'used', async (found) => {
      // Uses of a batch token cannot be counted, so one that says it has uses is good for none.
      if (found === undefined || found.record.type === 'batch') return 'none';
      const record = withOneUseLess(found.record, this.#now());
      return (await this.#commit(spendTransaction(found, record))) ? record : undefined;
    });
    if (record === 'none') return undefined;
    const acl = await this.#policies.compile(principal.root ? [] : record.policies);
    return Object.freeze({ ...principal, record, acl });
  }

  /**
   * Ends a token and everything below it, whatever this node's clock says of its time: a clock may be wrong, and go back. Returns whether
   * there was one. @throws AccessError `invalid_request` for a batch token, `too_many_conflicts`; StoreError
   */
  async revoke(name: TokenName): Promise<boolean> {
    const id = await this.#idOf(name, 'revoked');
    return id !== undefined && this.#turns.take(id, () => this.#attempt(() => this.#delete(id)));
  }

  /**
   * Ends a token and makes its children orphans. One that is made in this very moment goes with it.
   * @throws AccessError `invalid_request` for a batch token, `too_many_conflicts`; StoreError
   */
  async revokeAlone(name: TokenName): Promise<boolean> {
    const id = await this.#idOf(name, 'revoked');
    const found = id === undefined ? undefined : await this.#stored(id);
    if (found === undefined) return false;
    await this.#attempt(async () => ((await this.#orphanChildren(found.accessorId)) ? true : undefined));
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
    return runInSlices(sorted(accessors));
  }

  /**
   * Deletes what is due: tokens whose time has come, and those whose parent is gone. Only the active node calls it, from time to
   * time. @param limit - records looked at, about
   */
  async sweep(limit: number): Promise<SweepResult> {
    const key = await this.#tokens.key();
    const overdue = await sweepOverdue(this.#store, { key, now: this.#dueNow(), cursor: this.#dueCursor, limit });
    this.#dueCursor = overdue.cursor;
    const orphaned = await sweepOrphaned(this.#store, { key, cursor: this.#orphanCursor, limit });
    this.#orphanCursor = orphaned.cursor;
    return { removed: overdue.removed + orphaned.removed, unreadable: overdue.unreadable + orphaned.unreadable };
  }

  /** Makes every child of a token an orphan; false when one of them changed meanwhile. */
  async #orphanChildren(accessorId: string): Promise<boolean> {
    for (;;) {
      const { records } = await this.#store.range({ prefix: childrenOf(accessorId), limit: childrenPerTransaction });
      if (records.length === 0) return true;
      const transactions: Transaction[] = [];
      for (const { path } of records) {
        const { child } = parseChildPath(path);
        const token = await this.#stored(child);
        if (token === undefined) transactions.push({ conditions: [], writes: [{ path, value: null }] });
        else transactions.push(rewriteTransaction(token, { ...token.record, parent: '', parentAccessorId: '', generation: 0 }));
      }
      if (!(await this.#commit(combined(transactions)))) return false;
    }
  }

  async #role(name: string | undefined): Promise<StoredRole | undefined> {
    if (name === undefined) return undefined;
    const role = await this.roles.find(name);
    if (role === undefined) throw invalidRequest('unknown role');
    return role;
  }

  /** The token with this id as it is stored, good or not. @throws AccessError `record_unreadable`; StoreError */
  async #stored(id: string): Promise<StoredToken | undefined> {
    const stored = await this.#store.get(tokenPath(id));
    if (stored === undefined) return undefined;
    const record = decodeTokenRecord(stored.value);
    const accessorId = accessorIdOf(await this.#tokens.key(), record.accessor);
    return { id, record, revision: stored.revision, accessorId };
  }

  /** False when there is no such token, undefined when it changed meanwhile. */
  async #delete(id: string): Promise<boolean | undefined> {
    const found = await this.#stored(id);
    if (found === undefined) return false;
    return (await this.#commit(deleteTransaction(found))) ? true : undefined;
  }

  /** Id of a service token, whether or not there is one. @throws AccessError `invalid_request` for a batch token */
  async #idOf(name: TokenName, doing: string): Promise<string | undefined> {
    if ('id' in name) return name.id;
    if ('accessor' in name) return this.#idOfAccessor(name.accessor);
    if (isBatchToken(name.token)) {
      if ((await this.#tokens.openBatch(name.token)) === undefined) return undefined;
      // It goes by itself, or with its parent: there is no record of it to change.
      throw invalidRequest(`batch tokens cannot be ${doing}`);
    }
    return isTokenShaped(name.token) ? tokenIdOf(await this.#tokens.key(), name.token) : undefined;
  }

  async #idOfAccessor(accessor: string): Promise<string | undefined> {
    if (!isTokenShaped(accessor)) return undefined;
    const stored = await this.#store.get(accessorPath(accessorIdOf(await this.#tokens.key(), accessor)));
    return stored && decodeAccessorRecord(stored.value).token;
  }

  async #missingPolicyWarnings(names: readonly string[]): Promise<string[]> {
    const warnings: string[] = [];
    for (const name of names) {
      if (await this.#policies.exists(name)) continue;
      // A policy's text in the place of its name is not repeated.
      warnings.push(/^[^\s"{}]{1,128}$/.test(name) ? `Policy "${name}" does not exist` : 'A policy named there does not exist');
    }
    return warnings;
  }

  /** `step` with the good token of that name; again while it says undefined. @param doing - for the refusal of a batch token */
  async #change<T>(name: TokenName, doing: string, step: (found: LoadedToken | undefined) => Promise<T | undefined>): Promise<T> {
    const id = await this.#idOf(name, doing);
    if (id === undefined) return this.#attempt(() => step(undefined));
    return this.#turns.take(id, () => this.#attempt(async () => step(await this.#tokens.findById(id))));
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
