import { accessTurns, NamedLocks, runInSlices, sorted, TimeSlice } from '@transitd/event-loop';
import { type ClientCertificate, isCertificate, type RecordClock } from '@transitd/process';
import { pagesBelow, type Store, type Transaction, untilCommitted } from '@transitd/storage-fsm';
import { type Policies, quotedPolicyName } from '../policy/policies.ts';
import { noDisputes } from '../values/clock-dispute.ts';
import { DisputedDates } from '../values/disputed-dates.ts';
import { AccessError, conflict, invalidRequest } from '../values/errors.ts';
import { isBatchToken } from './batch-token.ts';
import { type LoginGrant, loginRecord } from './login-grant.ts';
import type { Principal } from './principal.ts';
import { rootRecord } from './root-token.ts';
import { accessorIdOf, isTokenShaped, newAccessor, newToken, tokenIdOf } from './token.ts';
import type { LoadedToken } from './token-cache.ts';
import { TokenDates } from './token-dates.ts';
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

interface TokenRegistryOptions {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly policies: Policies;
  readonly clock: RecordClock;
  /** Records of tokens that are dated while the node's clocks disagree; when absent, the clocks always agree. */
  readonly disputedDates?: DisputedDates;
  readonly limits?: TokenLimits;
}

/** How a request names a token: by the token, by the id in its principal, or by its accessor. */
export type TokenName = { readonly token: string } | { readonly id: string } | { readonly accessor: string };

/** A new or renewed token. */
export interface Granted {
  readonly record: TokenRecord;
  /** Seconds from now; 0 when it does not expire. */
  readonly ttlS: number;
  readonly warnings: readonly string[];
}

/** A new token and its text, which is returned only once. */
export interface Issued extends Granted {
  readonly token: string;
}

/** Maximum number of children that one transaction makes orphans. */
const childrenPerTransaction = 200;

/**
 * Creates, looks up, renews and revokes tokens. Every change is one conditional transaction and applies to all descendants when its
 * promise resolves; the sweep deletes their records later.
 */
export class TokenRegistry {
  readonly roles: TokenRoles;
  readonly limits: TokenLimits;
  readonly dates: TokenDates;
  readonly #store: Store;
  readonly #tokens: Tokens;
  readonly #policies: Policies;
  readonly #clock: RecordClock;
  #dueCursor = '';
  #orphanCursor = '';
  /** By the token's id. */
  readonly #locks = new NamedLocks();

  constructor({
    store,
    tokens,
    policies,
    clock,
    disputedDates = new DisputedDates(noDisputes),
    limits = defaultLimits,
  }: TokenRegistryOptions) {
    this.roles = new TokenRoles({ store });
    this.limits = limits;
    this.#store = store;
    this.#tokens = tokens;
    this.#policies = policies;
    this.#clock = clock;
    this.dates = new TokenDates({ store, disputedDates, locks: this.#locks });
  }

  /**
   * Creates a token. Only this call returns it.
   * @param role - name of a token role
   * @throws AccessError `invalid_request`, `bad_token` when the creator's token no longer exists, `too_many_conflicts`; StoreError
   */
  async create(
    request: TokenRequest,
    {
      principal,
      role: roleName,
      ...where
    }: { readonly principal: Principal; readonly role?: string } & Pick<Creator, 'privileged' | 'path' | 'makesOrphans'>,
  ): Promise<Issued> {
    if (principal.record.type === 'batch') throw invalidRequest('batch tokens cannot create more tokens');
    // Checked before the lookup: if this request was the last use, the token can no longer be found.
    if (principal.record.usesLeft !== 0) throw invalidRequest('restricted use token cannot generate child tokens');
    const token = request.id === undefined || request.id === '' ? newToken() : request.id;
    return this.#attempt(async () => {
      const creator = await this.#tokens.findById(principal.id);
      if (creator === undefined) throw new AccessError('bad_token', 'bad token');
      const role = await this.#role(roleName);
      const dispute = this.dates.dispute();
      const creation = { now: this.#clock.utcMs(), accessor: newAccessor(), limits: this.limits, role: role?.role };
      const { record, warnings: limitWarnings } = newTokenRecord(request, { ...creator, ...where }, creation);
      const warnings = [...limitWarnings, ...(await this.#missingPolicyWarnings(record.policies))];
      if (record.type === 'batch') {
        const sealed = await this.#tokens.sealBatch(record);
        // A batch token has no record whose write could be conditional on the creator.
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
      if (!(await this.#commit({ ...created, conditions }))) return undefined;
      this.dates.created(id, record, dispute);
      return granted;
    });
  }

  /**
   * Creates the token of a login, in one transaction with the writes of the login. Only this call returns it.
   * @returns undefined when a record that the login read has changed
   * @throws AccessError `invalid_request`; StoreError
   */
  async issue(login: LoginGrant): Promise<Issued | undefined> {
    const dispute = this.dates.dispute();
    const { record, warnings: limitWarnings } = loginRecord(login, {
      now: this.#clock.utcMs(),
      accessor: newAccessor(),
      limits: this.limits,
    });
    const granted = {
      record,
      ttlS: record.ttlS,
      warnings: [...limitWarnings, ...(await this.#missingPolicyWarnings(record.policies))],
    };
    const { mount, source, conditions: more = [], writes = [] } = login;
    const conditions = [mount.condition, source, ...more];
    if (record.type === 'batch') {
      const token = await this.#tokens.sealBatch(record);
      return (await this.#commit({ conditions, writes })) ? { ...granted, token } : undefined;
    }
    const token = newToken();
    const key = await this.#tokens.key();
    const made = { id: tokenIdOf(key, token), record, accessorId: accessorIdOf(key, record.accessor) };
    if (!(await this.#commit(issueTransaction(made, { conditions, writes })))) return undefined;
    this.dates.created(made.id, record, dispute);
    return { ...granted, token };
  }

  /**
   * As {@link issue}, for a login that is not tried again.
   * @param read - the record that the error names
   * @throws AccessError `too_many_conflicts` when a record that the login read has changed
   */
  async issueOnce(login: LoginGrant, read = 'the auth method'): Promise<Issued> {
    const issued = await this.issue(login);
    if (issued === undefined) throw conflict(read, { by: 'another request', outcome: 'no token was created' });
    return issued;
  }

  /**
   * Creates a root token without a parent. The caller has checked that this is authorized. Only this call returns the token.
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  createRoot(): Promise<{ readonly token: string; readonly record: TokenRecord }> {
    return this.#attempt(async () => {
      const [token, record] = [newToken(), rootRecord(this.#clock.utcMs())];
      const key = await this.#tokens.key();
      const made = { id: tokenIdOf(key, token), record, accessorId: accessorIdOf(key, record.accessor) };
      return (await this.#commit(issueTransaction(made, { conditions: [], writes: [] }))) ? { token, record } : undefined;
    });
  }

  /** Finds a valid token; undefined for any other. @throws StoreError */
  async find(name: TokenName): Promise<LoadedToken | undefined> {
    if ('token' in name) return this.#tokens.find(name.token);
    const id = 'id' in name ? name.id : await this.#idOfAccessor(name.accessor);
    return id === undefined ? undefined : this.#tokens.findById(id);
  }

  /** Returns the principal of another token; undefined when it is not valid. */
  async principal(name: TokenName): Promise<Principal | undefined> {
    const found = await this.find(name);
    return found && this.#tokens.principalOf(found);
  }

  /**
   * Renews a token; its remaining TTL may also become shorter.
   * @param incrementS - requested TTL in seconds; 0 for its initial TTL
   * @param certificate - of the client; a token that is bound to another one is not renewed
   * @returns undefined when there is no such token
   * @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError
   */
  async renew(name: TokenName, incrementS: number, certificate?: ClientCertificate): Promise<Granted | undefined> {
    const granted = await this.#change(name, 'renewed', async (found) => {
      if (found === undefined) return 'none';
      const { boundCertificate } = found.record;
      if (boundCertificate !== '' && !isCertificate(boundCertificate, certificate, this.#clock.utcMs()))
        throw invalidRequest('lease is not renewable: the token is bound to another client certificate');
      const { record, ttlS, conditions } = await renewable(found.record, {
        store: this.#store,
        roles: this.roles,
        limits: this.limits,
      });
      const dispute = this.dates.dispute();
      const renewal = { incrementS, ttlS, now: this.#clock.utcMs(), maxTtlS: this.limits.maxTtlS };
      const granted = renewed(record, renewal);
      const { writes, conditions: unchanged } = rewriteTransaction(found, granted.record);
      if (!(await this.#commit({ conditions: [...unchanged, ...conditions], writes }))) return undefined;
      this.dates.renewed(found.id, granted.record, dispute, (createdMs, earlierByMs) => {
        return renewed({ ...record, createdMs }, { ...renewal, now: renewal.now - earlierByMs }).record;
      });
      return granted;
    });
    return granted === 'none' ? undefined : granted;
  }

  /**
   * Counts one request of a token of limited uses.
   * @returns the principal for the rest of the request, with the written record and the present policies, since the token itself is
   * invalid after its last use; undefined when no use was left
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  async spend(principal: Principal): Promise<Principal | undefined> {
    const record = await this.#change({ id: principal.id }, 'used', async (found) => {
      // The uses of a batch token cannot be counted, so a batch token with limited uses has no uses at all.
      if (found === undefined || found.record.type === 'batch') return 'none';
      const record = withOneUseLess(found.record, this.#clock.utcMs());
      return (await this.#commit(spendTransaction(found, record))) ? record : undefined;
    });
    if (record === 'none') return undefined;
    const acl = await this.#policies.compile(principal.root ? [] : record.policies);
    return Object.freeze({ ...principal, record, acl });
  }

  /**
   * Revokes a token and its descendants. Returns whether it existed. An expired token is revoked too: this node's clock may be
   * wrong and may be set back.
   * @throws AccessError `invalid_request` for a batch token, `too_many_conflicts`; StoreError
   */
  async revoke(name: TokenName): Promise<boolean> {
    const id = await this.#idOf(name, 'revoked');
    return id !== undefined && this.#locks.run(id, () => this.#attempt(() => this.#delete(id)));
  }

  /**
   * Revokes a token and makes its children orphans. A child created at the same time is revoked with it.
   * @throws AccessError `invalid_request` for a batch token, `too_many_conflicts`; StoreError
   */
  async revokeAlone(name: TokenName): Promise<boolean> {
    const id = await this.#idOf(name, 'revoked');
    const found = id === undefined ? undefined : await this.#stored(id);
    if (found === undefined) return false;
    await this.#attempt(async () => ((await this.#orphanChildren(found.accessorId)) ? true : undefined));
    return this.revoke({ id: found.id });
  }

  /** Returns all accessors, sorted. Those of descendants of revoked tokens disappear with the next sweep. @throws StoreError */
  async accessors(): Promise<string[]> {
    const accessors: string[] = [];
    for await (const records of pagesBelow(this.#store, { prefix: accessorPrefix }))
      for (const { value } of records) accessors.push(decodeAccessorRecord(value).accessor);
    return runInSlices(sorted(accessors), new TimeSlice(accessTurns));
  }

  /**
   * Deletes expired tokens and tokens whose parent no longer exists. The active node calls it periodically.
   * @param limit - approximate number of records to check
   */
  async sweep(limit: number): Promise<SweepResult> {
    const key = await this.#tokens.key();
    const overdue = await sweepOverdue(this.#store, { key, now: this.#clock.dueMs(), cursor: this.#dueCursor, limit });
    this.#dueCursor = overdue.cursor;
    const orphaned = await sweepOrphaned(this.#store, { key, cursor: this.#orphanCursor, limit });
    this.#orphanCursor = orphaned.cursor;
    return { removed: overdue.removed + orphaned.removed, unreadable: overdue.unreadable + orphaned.unreadable };
  }

  /** Makes every child of a token an orphan; false when one of them changed at the same time. */
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

  /** Reads a token by id, valid or not. @throws AccessError `record_unreadable`; StoreError */
  async #stored(id: string): Promise<StoredToken | undefined> {
    const stored = await this.#store.get(tokenPath(id));
    if (stored === undefined) return undefined;
    const record = decodeTokenRecord(stored.value);
    const accessorId = accessorIdOf(await this.#tokens.key(), record.accessor);
    return { id, record, revision: stored.revision, accessorId };
  }

  /** Deletes a token. False when there is no such token, undefined when it changed at the same time. */
  async #delete(id: string): Promise<boolean | undefined> {
    const found = await this.#stored(id);
    if (found === undefined) return false;
    return (await this.#commit(deleteTransaction(found))) ? true : undefined;
  }

  /** Returns the id of a service token, which need not exist. @throws AccessError `invalid_request` for a batch token */
  async #idOf(name: TokenName, doing: string): Promise<string | undefined> {
    if ('id' in name) return name.id;
    if ('accessor' in name) return this.#idOfAccessor(name.accessor);
    if (isBatchToken(name.token)) {
      if ((await this.#tokens.openBatch(name.token)) === undefined) return undefined;
      // A batch token has no record to change. It expires by itself or with its parent.
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
      const quoted = quotedPolicyName(name);
      warnings.push(quoted === undefined ? 'A policy named there does not exist' : `Policy ${quoted} does not exist`);
    }
    return warnings;
  }

  /**
   * Runs `step` with the valid token that the request names. Repeats `step` while it returns undefined.
   * @param doing - for the error about a batch token
   */
  async #change<T>(name: TokenName, doing: string, step: (found: LoadedToken | undefined) => Promise<T | undefined>): Promise<T> {
    const id = await this.#idOf(name, doing);
    if (id === undefined) return this.#attempt(() => step(undefined));
    return this.#locks.run(id, () => this.#attempt(async () => step(await this.#tokens.findById(id))));
  }

  async #commit(transaction: Transaction): Promise<boolean> {
    return (await this.#store.commit(transaction)).outcome === 'committed';
  }

  /** Runs `step` until it returns a result other than undefined. @throws AccessError `too_many_conflicts` */
  #attempt<T>(step: () => Promise<T | undefined>): Promise<T> {
    return untilCommitted(step, () => conflict('the token'));
  }
}
