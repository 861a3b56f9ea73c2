import { accessTurns, runInSlices, TimeSlice } from '@transitd/event-loop';
import type { RecordClock } from '@transitd/process';
import { namesBelow, type Store } from '@transitd/storage-fsm';
import { AccessError, invalidRequest, recordUnreadable } from '../values/errors.ts';
import { Acl, decisionsBytesMax } from './acl.ts';
import { defaultPolicyText } from './default-policy.ts';
import { inForce } from './in-force.ts';
import type { Policy } from './policy.ts';
import { checkPolicy, noticesOf, type PolicyCheck } from './policy-check.ts';
import { plainText, policySteps, policyValuesMax } from './policy-text.ts';
import { WeightedCache } from './weighted-cache.ts';

const prefix = 'access/policy/';
const format = 1;

/** Maximum length of a policy name, in bytes of UTF-8. */
const nameBytesMax = 512;

/**
 * Maximum number of rules in force in all policies of a token together: each rule may be tried for every requested path. A token with
 * more rules is refused, because ignoring some rules could ignore a denial.
 */
const rulesPerTokenMax = 10_000;
/** The same for the parameters that rules list, and their values, which are merged for each path: as many as one policy can have. */
const valuesPerTokenMax = policyValuesMax;

/** Approximate memory for parsed policies and for compiled sets of policies, in bytes. */
const [parsedBytesMax, compiledBytesMax] = [32 * 1024 * 1024, 64 * 1024 * 1024];
/** Estimated bytes of a policy, of each of its rules, and of a compiled set with its cached decisions. */
const [policyBytes, ruleBytes, setBytes] = [1024, 512, 1024 + decisionsBytesMax];

/** A parsed policy with its approximate size in memory. */
interface Parsed {
  readonly policy: Policy;
  readonly bytes: number;
}

/** The policy of wrapping tokens. Only the node assigns it; it has no text and grants nothing. */
export const wrappingPolicy = 'response-wrapping';
export const unassignable: readonly string[] = [wrappingPolicy];

/** Returns the canonical form of a policy name, valid or not. */
export const canonicalPolicyName = (name: string): string => name.trim().toLowerCase();

/** Returns the canonical form of a valid policy name, in lower case. @throws AccessError `invalid_request` */
export function policyName(name: string): string {
  const lower = canonicalPolicyName(name);
  if (!isPolicyName(lower))
    throw invalidRequest(
      'a policy name must have 1 to 512 bytes, no control characters and no segment that is empty, "." or ".."',
    );
  return lower;
}

const isPolicyName = (name: string): boolean =>
  Buffer.byteLength(name) <= nameBytesMax &&
  name.isWellFormed() &&
  !/\p{Cc}/u.test(name) &&
  name.split('/').every((segment) => !/^\.{0,2}$/.test(segment));

/** Returns the name as texts for callers quote it; undefined for a name that may be a policy text sent in place of a name. */
export const quotedPolicyName = (name: string): string | undefined => (/^[^\s"{}]{1,128}$/.test(name) ? `"${name}"` : undefined);

/**
 * The policies: their texts in the store, and a cache of compiled sets. A set leaves the cache when a change to one of its policies
 * is applied. `root` has no text; `default` has a built-in text until an operator writes another.
 */
export class Policies {
  readonly #store: Store;
  readonly #clock: RecordClock;
  readonly #unwatch: () => void;
  readonly #parsed = new WeightedCache<Parsed>(parsedBytesMax);
  readonly #compiled = new WeightedCache<Acl>(compiledBytesMax);
  /** Compilations in progress, so that concurrent requests share one. */
  readonly #compiling = new Map<string, Promise<Acl>>();
  #generation = 0;

  /**
   * @param clock - the rights of a rule expire by the source that is ahead, its restrictions by the one that is behind
   */
  constructor({
    store,
    clock,
  }: {
    readonly store: Store;
    readonly clock: RecordClock;
  }) {
    this.#store = store;
    this.#clock = clock;
    this.#unwatch = store.watch(prefix, (changes) => {
      if (changes === 'everything') return this.clear();
      for (const { path } of changes) this.#forget(path.slice(prefix.length));
      this.#generation += 1;
    });
  }

  /** Increases with every change. A result compiled under another generation is out of date. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Total size of all compiled sets evicted so far, in bytes. Cached tokens still refer to evicted sets; the rise of this number shows when
   * the tokens should release them.
   */
  get evictedBytes(): number {
    return this.#compiled.evictedWeight;
  }

  /** Returns the compiled policies if they are cached. */
  compiled(names: readonly string[]): Acl | undefined {
    const acl = this.#compiled.get(keyOf(names));
    return acl !== undefined && acl.goodUntilMs > this.#clock.utcMs() ? acl : undefined;
  }

  /**
   * Compiles the named policies as they are now. A name without a policy grants nothing.
   * @param names - sorted, without duplicates
   * @throws AccessError `record_unreadable`, `too_many_rules`; StoreError
   */
  compile(names: readonly string[]): Promise<Acl> {
    const key = keyOf(names);
    const known = this.#compiling.get(key);
    if (known !== undefined) return known;
    const compiling = this.#compile(names).finally(() => this.#compiling.delete(key));
    this.#compiling.set(key, compiling);
    return compiling;
  }

  async #compile(names: readonly string[]): Promise<Acl> {
    for (;;) {
      const present = this.compiled(names);
      if (present !== undefined) return present;
      const generation = this.#generation;
      const { policies, bytes } = await this.#inForce(names);
      if (generation !== this.#generation) continue;
      const acl = await Acl.compile(policies, names);
      if (generation !== this.#generation) continue;
      this.#compiled.set(keyOf(names), acl, bytes);
      return acl;
    }
  }

  /** Returns the rules that have not expired. Stops reading at the limit, so that a request with too many rules costs little. */
  async #inForce(names: readonly string[]): Promise<{ readonly policies: readonly Policy[]; readonly bytes: number }> {
    const clocks = { nowMs: this.#clock.utcMs(), dueNowMs: this.#clock.dueMs() };
    const policies: Policy[] = [];
    let [bytes, rules, values] = [setBytes, 0, 0];
    for (const name of names) {
      const parsed = await this.#policy(name);
      const policy = inForce(parsed.policy, clocks);
      rules += policy.length;
      if (rules > rulesPerTokenMax)
        throw new AccessError('too_many_rules', `the policies of this token have more than ${rulesPerTokenMax} rules together`);
      values += valuesIn(policy);
      if (values > valuesPerTokenMax)
        throw new AccessError(
          'too_many_rules',
          `the policies of this token list more than ${valuesPerTokenMax} parameters and values together`,
        );
      policies.push(policy);
      bytes += parsed.bytes;
    }
    return { policies, bytes };
  }

  /** Returns the text of a policy; empty for `root`. @throws AccessError `invalid_request`, `not_found`; StoreError */
  async read(name: string): Promise<string> {
    const text = await this.#text(policyName(name));
    if (text === undefined) throw new AccessError('not_found', 'no such policy');
    return text;
  }

  /**
   * Writes a policy. It is in force for every token when the promise resolves.
   * @param given - plain text or base64
   * @returns warnings about parts without effect
   * @throws AccessError `invalid_request`, `invalid_policy`, `policy_too_large`; StoreError
   */
  async write(name: string, given: string): Promise<readonly string[]> {
    const lower = policyName(name);
    if (lower === 'root' || lower === wrappingPolicy) throw invalidRequest(`cannot update "${lower}" policy`);
    const text = plainText(given);
    const parsed = await runInSlices(policySteps(text), new TimeSlice(accessTurns));
    const value = Buffer.concat([Buffer.of(format), Buffer.from(text, 'utf8')]);
    await this.#store.commit({ conditions: [], writes: [{ path: prefix + lower, value }] });
    return noticesOf(parsed);
  }

  /** Checks a policy without writing it. @see checkPolicy */
  check(given: string, paths: readonly string[]): Promise<PolicyCheck> {
    return checkPolicy(given, paths, { nowMs: this.#clock.utcMs(), dueNowMs: this.#clock.dueMs() });
  }

  /** Deletes a policy if it exists. @throws AccessError `invalid_request`; StoreError */
  async delete(name: string): Promise<void> {
    const lower = policyName(name);
    if (lower === 'root' || lower === 'default' || lower === wrappingPolicy)
      throw invalidRequest(`cannot delete "${lower}" policy`);
    await this.#store.commit({ conditions: [], writes: [{ path: prefix + lower, value: null }] });
  }

  /** Returns all names, sorted. */
  async list(): Promise<string[]> {
    const names = new Set(['default', 'root', ...(await namesBelow(this.#store, prefix))]);
    return [...names].sort();
  }

  /** Returns whether the policy exists. */
  async exists(name: string): Promise<boolean> {
    return name === 'default' || name === 'root' || (isPolicyName(name) && (await this.#store.get(prefix + name)) !== undefined);
  }

  /** Clears the cache: when the barrier seals, and when any record may have changed. */
  clear(): void {
    this.#parsed.clear();
    this.#compiled.clear();
    this.#generation += 1;
  }

  /** Clears the cache and stops watching the store. */
  close(): void {
    this.#unwatch();
    this.clear();
  }

  /** Drops a policy and every compiled set that contains it. */
  #forget(name: string): void {
    this.#parsed.delete(name);
    for (const key of [...this.#compiled.keys()]) if (`\n${key}\n`.includes(`\n${name}\n`)) this.#compiled.delete(key);
  }

  async #policy(name: string): Promise<Parsed> {
    const known = this.#parsed.get(name);
    if (known !== undefined) return known;
    const generation = this.#generation;
    const text = (await this.#text(name)) ?? '';
    const policy = await parseStored(text);
    const parsed = { policy, bytes: policyBytes + 2 * text.length + ruleBytes * policy.length };
    if (generation === this.#generation) this.#parsed.set(name, parsed, parsed.bytes);
    return parsed;
  }

  async #text(name: string): Promise<string | undefined> {
    if (name === 'root') return '';
    const record = isPolicyName(name) ? await this.#store.get(prefix + name) : undefined;
    if (record === undefined) return name === 'default' ? defaultPolicyText : undefined;
    if (record.value[0] !== format) throw recordUnreadable();
    return Buffer.from(record.value.subarray(1)).toString('utf8');
  }
}

/** Every text is parsed before it is written, so a stored text that cannot be parsed comes from a newer version. */
async function parseStored(text: string): Promise<Policy> {
  try {
    return (await runInSlices(policySteps(text), new TimeSlice(accessTurns))).policy;
  } catch (error) {
    throw recordUnreadable({ cause: error });
  }
}

const valuesIn = (policy: Policy): number =>
  policy.reduce((sum, { rule: { parameters } }) => {
    const lists = [...parameters.allowed.values(), ...parameters.denied.values()];
    return lists.reduce((inRule, list) => inRule + 1 + list.length, sum + parameters.required.length);
  }, 0);

/** A line break separates names, since names have no control characters. */
const keyOf = (names: readonly string[]): string => names.join('\n');
