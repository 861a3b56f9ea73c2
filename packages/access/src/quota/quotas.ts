import { NamedLocks } from '@transitd/event-loop';
import { type Clock, callerGroup } from '@transitd/process';
import { changeRecords, pagesBelow, type Store } from '@transitd/storage-fsm';
import { conflict, invalidRequest, RateLimited } from '../values/errors.ts';
import { isRoleName, loginName } from '../values/names.ts';
import {
  changedQuota,
  checkQuotaConfig,
  countSameRequests,
  decodeQuota,
  decodeQuotaConfig,
  encodeQuota,
  mostSpecificFirst,
  newQuotaConfig,
  type Quota,
  type QuotaChange,
  type QuotaConfig,
  quotaMatches,
} from './quota.ts';
import { admission, type Bucket } from './token-bucket.ts';

const prefix = 'access/quota/';
const configPath = 'access/quota-config';

/** Maximum number of quotas: each may be checked for every request. */
const quotasMax = 256;

/** State of a caller under a quota. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the full limit is available again. */
  readonly resetS: number;
}

interface QuotasOptions {
  readonly store: Store;
  readonly clock: Clock;
  /**
   * Maximum number of callers in memory, over all quotas. The least recent caller is dropped; its next request starts with a full
   * limit.
   */
  readonly callersMax?: number;
}

/** Rate limits. Each node counts requests by itself, in memory; the quotas are stored. */
export class Quotas {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #callersMax: number;
  readonly #unwatch: () => void;
  /** The most specific path first, so that the first match applies. */
  #quotas: readonly Quota[] = [];
  #config = newQuotaConfig;
  readonly #locks = new NamedLocks();
  readonly #buckets = new Map<string, Bucket>();
  #byToken = false;
  #changes = 0;
  /** The latest read of the quotas. It never rejects. */
  #reading: Promise<void> = Promise.resolve();
  /** Number of changes of the records, and the number of those that the present quotas include. */
  #changed = 0;
  #included = 0;

  constructor({ store, clock, callersMax = 65_536 }: QuotasOptions) {
    this.#store = store;
    this.#callersMax = callersMax;
    this.#clock = clock;
    this.#unwatch = store.watch('access/quota', () => {
      this.#changed += 1;
      this.#reading = this.#reading.then(() => this.#read()).catch(() => undefined); // the store closes when the barrier seals
    });
  }

  get config(): QuotaConfig {
    return this.#config;
  }

  /** Reads the quotas. No quota is enforced before this read. @throws AccessError `record_unreadable`; StoreError */
  async open(): Promise<void> {
    await this.#read();
  }

  /** Returns whether a quota may count requests with this path; also true while changed quotas are not read yet. */
  mayCount(path: string): boolean {
    return this.#included !== this.#changed || (this.#quotas.length > 0 && this.#quotaOf(path) !== undefined);
  }

  /**
   * Counts a request by address, before it is authenticated. Returns undefined when no quota applies or the quota counts by token.
   * @throws RateLimited
   */
  admit(path: string, address: string): Allowance | undefined {
    const quota = this.#quotas.length === 0 ? undefined : this.#quotaOf(path);
    return quota?.groupBy === 'ip' ? this.#take(quota, path, callerGroup(address)) : undefined;
  }

  /**
   * Counts an authenticated request if the quota on its path counts by token.
   * @param tokenId - id of a valid token; undefined without one
   * @throws RateLimited
   */
  admitToken(path: string, tokenId: string | undefined, address: string): void {
    const quota = this.#byToken ? this.#quotaOf(path) : undefined;
    if (quota?.groupBy === 'token') this.#take(quota, path, tokenId === undefined ? callerGroup(address) : `token ${tokenId}`);
  }

  /** Counts a login by role, in addition to its request. @param role - its name in lower case @throws RateLimited */
  admitLogin(path: string, role: string, address: string): void {
    const quota = this.#quotas.find((each) => each.role !== '' && loginName(each.role) === role && quotaMatches(each.path, path));
    if (quota !== undefined) this.#take(quota, path, callerGroup(address));
  }

  /** Finds a quota by name. @throws AccessError `record_unreadable`; StoreError */
  async find(name: string): Promise<Quota | undefined> {
    const record = isRoleName(name) ? await this.#store.get(prefix + name) : undefined;
    return record && decodeQuota(record.value);
  }

  /** Returns all names, sorted. */
  async list(): Promise<string[]> {
    return (await this.#all()).map(({ name }) => name).sort();
  }

  /**
   * Creates or changes a quota. It is enforced on this node when the promise resolves.
   * @throws AccessError `invalid_request`, also if another quota counts the same requests; `too_many_conflicts`; StoreError
   */
  async write(name: string, change: QuotaChange): Promise<void> {
    // One at a time: two quotas with one path must not be created side by side.
    await this.#locks.run('quotas', () => this.#write(name, change));
  }

  async #write(name: string, change: QuotaChange): Promise<void> {
    if (!isRoleName(name)) throw invalidRequest('a quota name must have 1 to 128 letters, digits, "_", ".", "@" or "-"');
    const path = prefix + name;
    const next = async () => {
      const present = await this.#store.get(path);
      const all = await this.#all();
      if (present === undefined && all.length >= quotasMax) throw invalidRequest(`at most ${quotasMax} quotas are allowed`);
      const quota = changedQuota(name, present && decodeQuota(present.value), change);
      const twin = all.find((each) => each.name !== name && countSameRequests(each, quota));
      if (twin !== undefined)
        throw invalidRequest(
          `the quota "${twin.name}" limits the same requests, and only one of two applies: change or delete that quota`,
        );
      return { conditions: [{ path, revision: present?.revision ?? 0 }], writes: [{ path, value: encodeQuota(quota) }] };
    };
    await changeRecords(this.#store, next, () => conflict('the quota'));
    await this.#reading;
  }

  /** Deletes a quota if it exists. @throws StoreError */
  async delete(name: string): Promise<void> {
    if (isRoleName(name)) await this.#store.commit({ conditions: [], writes: [{ path: prefix + name, value: null }] });
    await this.#reading;
  }

  /** Changes the given settings. @throws AccessError `invalid_request`; StoreError */
  async configure(change: { readonly [Name in keyof QuotaConfig]?: QuotaConfig[Name] | undefined }): Promise<void> {
    const record = await this.#store.get(configPath);
    const present = configOf(record?.value);
    const config = checkQuotaConfig({
      responseHeaders: change.responseHeaders ?? present.responseHeaders,
      exemptPaths: change.exemptPaths ?? present.exemptPaths,
      auditLogging: change.auditLogging ?? present.auditLogging,
    });
    await this.#store.commit({ conditions: [], writes: [{ path: configPath, value: encodeQuota(config) }] });
    await this.#reading;
  }

  close(): void {
    this.#unwatch();
  }

  #quotaOf(path: string): Quota | undefined {
    const quota = this.#quotas.find((each) => each.role === '' && quotaMatches(each.path, path));
    const isExempt = (): boolean => this.#config.exemptPaths.some((exempt) => exempt !== '' && quotaMatches(exempt, path));
    return quota === undefined || isExempt() ? undefined : quota;
  }

  #take(quota: Quota, path: string, caller: string): Allowance {
    const key = `${quota.name}\n${caller}`;
    const { bucket, admitted, remaining, waitMs } = admission(this.#buckets.get(key), quota, this.#clock.nowMs());
    this.#buckets.delete(key);
    const oldest = this.#buckets.size >= this.#callersMax ? this.#buckets.keys().next() : undefined;
    if (oldest?.done === false) this.#buckets.delete(oldest.value);
    this.#buckets.set(key, bucket);
    const allowance = { limit: Math.max(1, Math.floor(quota.rate)), remaining, resetS: Math.ceil(waitMs / 1000) };
    if (!admitted) throw new RateLimited(`request path "${path}": rate limit quota exceeded`, allowance);
    return allowance;
  }

  /** Reads the quotas and drops the counts of quotas that have changed. */
  async #read(): Promise<void> {
    const mine = ++this.#changes;
    const changed = this.#changed;
    const [quotas, record] = [await this.#all(), await this.#store.get(configPath)];
    if (mine !== this.#changes) return;
    const before = new Map(this.#quotas.map((quota) => [quota.name, JSON.stringify(quota)]));
    const same = new Set(quotas.filter((quota) => before.get(quota.name) === JSON.stringify(quota)).map(({ name }) => name));
    for (const key of this.#buckets.keys()) if (!same.has(key.slice(0, key.indexOf('\n')))) this.#buckets.delete(key);
    this.#byToken = quotas.some(({ groupBy }) => groupBy === 'token');
    this.#quotas = quotas.sort(mostSpecificFirst);
    this.#config = configOf(record?.value);
    this.#included = changed;
  }

  async #all(): Promise<Quota[]> {
    const quotas: Quota[] = [];
    for await (const records of pagesBelow(this.#store, { prefix }))
      for (const { value } of records) quotas.push(decodeQuota(value));
    return quotas;
  }
}

/** Decodes the settings; returns the defaults when there is no record. */
const configOf = (stored: Uint8Array | undefined): QuotaConfig =>
  stored === undefined ? newQuotaConfig : decodeQuotaConfig(stored);
