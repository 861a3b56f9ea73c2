import { randomBytes, randomUUID } from 'node:crypto';
import type { Condition, Store } from '@transitd/storage-fsm';
import { AccessError, invalidRequest } from '../errors.ts';
import {
  type AuthMount,
  authMountPath,
  authMountPrefix,
  authTypes,
  decodeAuthMount,
  encodeAuthMount,
  isAuthPath,
  isAuthType,
} from './auth-mount.ts';

/** A method, and what holds while it is still that one, tuned as it is. */
export interface StoredMount extends AuthMount {
  readonly condition: Condition;
}

/** What can be said of a method when it is enabled and later. */
export interface AuthTuning {
  readonly description?: string | undefined;
  /** Seconds, as is the next. */
  readonly defaultTtlS?: number | undefined;
  readonly maxTtlS?: number | undefined;
}

const attemptsMax = 5;
const descriptionCharsMax = 1024;

/** Where login methods are enabled. */
export class AuthMounts {
  readonly #store: Store;

  constructor({ store }: { readonly store: Store }) {
    this.#store = store;
  }

  /** Undefined when no method is enabled there. @throws AccessError `record_unreadable`; StoreError */
  async find(path: string): Promise<StoredMount | undefined> {
    const at = authMountPath(path);
    const record = isAuthPath(path) ? await this.#store.get(at) : undefined;
    return record && { ...decodeAuthMount(record.value), condition: { path: at, revision: record.revision } };
  }

  /** Every method, by path. @throws AccessError `record_unreadable`; StoreError */
  async list(): Promise<readonly AuthMount[]> {
    const mounts: AuthMount[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page = await this.#store.range({ prefix: authMountPrefix, ...(after !== '' && { after }) });
      for (const { value } of page.records) mounts.push(decodeAuthMount(value));
      after = page.next;
    }
    return mounts;
  }

  /** @throws AccessError `invalid_request`; StoreError */
  async enable(path: string, type: string, tuning: AuthTuning): Promise<void> {
    if (!isAuthType(type)) throw invalidRequest(`a login method has one of the types ${authTypes.join(', ')}`);
    if (path === 'token') throw inUse(path);
    if (!isAuthPath(path)) throw invalidRequest('the path of a login method has 1 to 64 letters, digits, "_", "." or "-"');
    const accessor = `auth_${type}_${randomBytes(4).toString('hex')}`;
    const mount = { path, id: randomUUID(), type, accessor, description: '', defaultTtlS: 0, maxTtlS: 0 };
    const value = encodeAuthMount(tuned(mount, tuning));
    const at = authMountPath(path);
    const { outcome } = await this.#store.commit({ conditions: [{ path: at, revision: 0 }], writes: [{ path: at, value }] });
    if (outcome === 'conflict') throw inUse(path);
  }

  /** Returns whether there was one. @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError */
  async tune(path: string, tuning: AuthTuning): Promise<boolean> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const found = await this.find(path);
      if (found === undefined) return false;
      const { condition, ...mount } = found;
      const writes = [{ path: condition.path, value: encodeAuthMount(tuned(mount, tuning)) }];
      if ((await this.#store.commit({ conditions: [condition], writes })).outcome === 'committed') return true;
    }
    throw new AccessError('too_many_conflicts', 'the login method changed too often in the meantime; nothing was done');
  }

  /** One small write, with which every token of the method, and all below it, are good no more. @throws AccessError `invalid_request`; StoreError */
  async disable(path: string): Promise<void> {
    if (path === 'token') throw invalidRequest('token credential backend cannot be disabled');
    if (isAuthPath(path)) await this.#store.commit({ conditions: [], writes: [{ path: authMountPath(path), value: null }] });
  }
}

function tuned(mount: AuthMount, { description, defaultTtlS, maxTtlS }: AuthTuning): AuthMount {
  const next = {
    ...mount,
    description: description ?? mount.description,
    defaultTtlS: defaultTtlS ?? mount.defaultTtlS,
    maxTtlS: maxTtlS ?? mount.maxTtlS,
  };
  if (next.description.length > descriptionCharsMax)
    throw invalidRequest(`a description has at most ${descriptionCharsMax} characters`);
  if (next.maxTtlS !== 0 && next.defaultTtlS > next.maxTtlS)
    throw invalidRequest('default_lease_ttl must be at most max_lease_ttl');
  return next;
}

const inUse = (path: string): AccessError => invalidRequest(`path is already in use at ${path}/`);
