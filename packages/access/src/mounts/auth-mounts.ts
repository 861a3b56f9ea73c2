import { randomBytes, randomUUID } from 'node:crypto';
import { NamedLocks } from '@transitd/event-loop';
import { type Condition, changeRecords, pagesBelow, type Store } from '@transitd/storage-fsm';
import { type AccessError, conflict, invalidRequest } from '../values/errors.ts';
import { changedInert, type InertSettings } from '../values/inert-settings.ts';
import {
  type AuthMount,
  authMountPath,
  authMountPrefix,
  authPathFault,
  decodeAuthMount,
  encodeAuthMount,
  newAuthMount,
  segmentsMax,
  wordsBelow,
} from './auth-mount.ts';

/** An auth method, with a condition that holds while the method is unchanged. */
export interface StoredMount extends AuthMount {
  readonly condition: Condition;
}

/** Settings of an auth method that can be changed later. */
interface AuthTuning {
  readonly description?: string | undefined;
  /** Seconds, like `maxTtlS`. */
  readonly defaultTtlS?: number | undefined;
  readonly maxTtlS?: number | undefined;
  readonly options?: AuthMount['options'] | undefined;
  /** Given settings replace the present ones. */
  readonly inert?: InertSettings | undefined;
}

/** Settings of an auth method that never change. */
type FixedAuthSettings = Partial<Pick<AuthMount, 'local' | 'sealWrap' | 'externalEntropyAccess'>>;

const descriptionCharsMax = 1024;
const optionsCharsMax = 4096;

/** The enabled auth methods in the store. */
export class AuthMounts {
  readonly #store: Store;
  readonly #types: readonly string[];
  readonly #words: ReadonlySet<string>;
  readonly #locks = new NamedLocks();

  /** @param types - the types that methods can have, with the paths of requests below a method */
  constructor({
    store,
    types,
  }: { readonly store: Store; readonly types: readonly { readonly type: string; readonly paths: object }[] }) {
    this.#store = store;
    this.#types = types.map(({ type }) => type).sort();
    this.#words = wordsBelow(types);
  }

  /** Finds the auth method at a path. @throws AccessError `record_unreadable`; StoreError */
  async find(path: string): Promise<StoredMount | undefined> {
    const at = authMountPath(path);
    const record = authPathFault(path, this.#words) === undefined ? await this.#store.get(at) : undefined;
    return record && { ...decodeAuthMount(record.value), condition: { path: at, revision: record.revision } };
  }

  /** Finds the auth method that serves a path below `auth/`. @throws AccessError `record_unreadable`; StoreError */
  async serving(path: string): Promise<StoredMount | undefined> {
    // No method's path is a prefix of another's.
    const segments = path.split('/', segmentsMax);
    for (const at of segments.keys()) {
      const found = await this.find(segments.slice(0, at + 1).join('/'));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Returns all methods, sorted by path. @throws AccessError `record_unreadable`; StoreError */
  async list(): Promise<readonly AuthMount[]> {
    const mounts: AuthMount[] = [];
    for await (const records of pagesBelow(this.#store, { prefix: authMountPrefix }))
      for (const { value } of records) mounts.push(decodeAuthMount(value));
    return mounts;
  }

  /** Enables an auth method. @throws AccessError `invalid_request`; StoreError */
  async enable(path: string, type: string, tuning: AuthTuning, fixed: FixedAuthSettings = {}): Promise<void> {
    // One at a time: a method must not be enabled below another one that is enabled meanwhile.
    await this.#locks.run('mounts', () => this.#enable(path, type, tuning, fixed));
  }

  async #enable(path: string, type: string, tuning: AuthTuning, fixed: FixedAuthSettings): Promise<void> {
    if (!this.#types.includes(type)) throw invalidRequest(`the type of an auth method must be one of ${this.#types.join(', ')}`);
    if (path === 'token') throw inUse(path);
    const fault = authPathFault(path, this.#words);
    if (fault !== undefined) throw invalidRequest(`the path of an auth method ${fault}`);
    const near = (await this.list()).find(
      (mount) => `${mount.path}/`.startsWith(`${path}/`) || path.startsWith(`${mount.path}/`),
    );
    if (near !== undefined) throw inUse(near.path);
    const accessor = `auth_${type}_${randomBytes(4).toString('hex')}`;
    const mount: AuthMount = { path, id: randomUUID(), type, accessor, ...newAuthMount, ...fixed };
    const value = encodeAuthMount(tuned(mount, tuning));
    const at = authMountPath(path);
    const { outcome } = await this.#store.commit({ conditions: [{ path: at, revision: 0 }], writes: [{ path: at, value }] });
    if (outcome === 'conflict') throw inUse(path);
  }

  /**
   * Changes the settings of an auth method. Returns whether it exists.
   * @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError
   */
  tune(path: string, tuning: AuthTuning): Promise<boolean> {
    const next = async () => {
      const found = await this.find(path);
      if (found === undefined) return undefined;
      const { condition, ...mount } = found;
      return {
        conditions: [condition],
        writes: [{ path: condition.path, value: encodeAuthMount(tuned(mount, tuning)) }],
      };
    };
    return changeRecords(this.#store, next, () => conflict('the auth method'));
  }

  /**
   * Disables an auth method in one small write, which revokes all its tokens and their descendants.
   * @throws AccessError `invalid_request`; StoreError
   */
  async disable(path: string): Promise<void> {
    if (path === 'token') throw invalidRequest('token credential backend cannot be disabled');
    if (authPathFault(path, this.#words) === undefined)
      await this.#store.commit({ conditions: [], writes: [{ path: authMountPath(path), value: null }] });
  }
}

function tuned(mount: AuthMount, { description, defaultTtlS, maxTtlS, options, inert }: AuthTuning): AuthMount {
  const next = {
    ...mount,
    description: description ?? mount.description,
    defaultTtlS: defaultTtlS ?? mount.defaultTtlS,
    maxTtlS: maxTtlS ?? mount.maxTtlS,
    options: options ?? mount.options,
    inert: changedInert(mount.inert, inert),
  };
  if (next.description.length > descriptionCharsMax)
    throw invalidRequest(`a description must have at most ${descriptionCharsMax} characters`);
  if (JSON.stringify(next.options).length > optionsCharsMax)
    throw invalidRequest(`options must have at most ${optionsCharsMax} characters in all`);
  if (next.maxTtlS !== 0 && next.defaultTtlS > next.maxTtlS)
    throw invalidRequest('default_lease_ttl must be at most max_lease_ttl');
  return next;
}

const inUse = (path: string): AccessError => invalidRequest(`path is already in use at ${path}/`);
