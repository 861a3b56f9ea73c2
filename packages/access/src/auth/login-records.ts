import type { Condition, Store, Write } from '@transitd/storage-fsm';
import { AccessError, invalidRequest } from '../errors.ts';
import { decodeJson, encodeJson } from '../json-record.ts';
import type { StoredMount } from '../mounts/auth-mounts.ts';
import { isRoleName, loginName } from '../values/names.ts';

export const loginPrefix = 'access/login/';

/** Where the records of one method lie. */
export const loginRecordsPrefix = (mountId: string): string => `${loginPrefix}${mountId}/`;

/** A record, and what holds while it is still that one. */
export interface Stored<T> {
  readonly value: T;
  readonly condition: Condition;
}

/** What becomes of a record, and what holds and is written with it. */
export interface RecordChange<T> {
  readonly value: T;
  readonly conditions?: readonly Condition[];
  readonly writes?: readonly Write[];
}

const attemptsMax = 5;
const recordBytesMax = 64 * 1024;

/** Records of one kind by name, such as the users of a method. Names are kept and found without case. */
export class LoginRecords<T extends object> {
  readonly #store: Store;
  readonly #kind: string;
  readonly #example: T;

  /** @param example - the shape that every record must have */
  constructor({ store, kind, example }: { readonly store: Store; readonly kind: string; readonly example: T }) {
    this.#store = store;
    this.#kind = kind;
    this.#example = example;
  }

  pathOf(mountId: string, name: string): string {
    return `${loginRecordsPrefix(mountId)}${this.#kind}/${loginName(name)}`;
  }

  /** Undefined when there is none of that name. @throws AccessError `record_unreadable`; StoreError */
  async find(mountId: string, name: string): Promise<Stored<T> | undefined> {
    if (!isRoleName(name)) return undefined;
    const path = this.pathOf(mountId, name);
    const record = await this.#store.get(path);
    return record && { value: decodeJson(record.value, this.#example), condition: { path, revision: record.revision } };
  }

  /**
   * Makes a record or changes it, while the method is enabled and nobody else changes it.
   * @param next - what becomes of the present one, and what else is written with it; it may be asked again
   * @throws AccessError `invalid_request`, `too_many_conflicts`, also when the method has changed; StoreError; whatever `next` throws
   */
  async change(
    mount: StoredMount,
    name: string,
    next: (present: T | undefined) => RecordChange<T> | Promise<RecordChange<T>>,
  ): Promise<void> {
    if (!isRoleName(name)) throw invalidRequest('a name has 1 to 128 letters, digits, "_", ".", "@" or "-"');
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const present = await this.find(mount.id, name);
      const { value, conditions: more = [], writes = [] } = await next(present?.value);
      const encoded = encodeJson(value);
      if (encoded.length > recordBytesMax)
        throw invalidRequest(`what is said of one name comes to at most ${recordBytesMax} bytes`);
      const path = this.pathOf(mount.id, name);
      const conditions = [mount.condition, present?.condition ?? { path, revision: 0 }, ...more];
      if ((await this.#store.commit({ conditions, writes: [{ path, value: encoded }, ...writes] })).outcome === 'committed')
        return;
      await this.#requireMount(mount);
    }
    throw new AccessError('too_many_conflicts', 'this name changed too often in the meantime; nothing was done');
  }

  /** Deletes a record, if there is one. @param also - what goes with it. @throws AccessError `too_many_conflicts`; StoreError */
  async delete(mountId: string, name: string, also: (present: T) => readonly Write[] = () => []): Promise<void> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const present = await this.find(mountId, name);
      if (present === undefined) return;
      const writes = [{ path: present.condition.path, value: null }, ...also(present.value)];
      if ((await this.#store.commit({ conditions: [present.condition], writes })).outcome === 'committed') return;
    }
    throw new AccessError('too_many_conflicts', 'this name changed too often in the meantime; nothing was done');
  }

  /** Every name, sorted. @throws StoreError */
  async list(mountId: string): Promise<string[]> {
    const prefix = this.pathOf(mountId, '');
    const names: string[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page = await this.#store.range({ prefix, ...(after !== '' && { after }) });
      for (const { path } of page.records) names.push(path.slice(prefix.length));
      after = page.next;
    }
    return names.sort();
  }

  async #requireMount({ condition }: StoredMount): Promise<void> {
    const record = await this.#store.get(condition.path);
    if (record?.revision !== condition.revision)
      throw new AccessError('too_many_conflicts', 'the login method changed meanwhile; nothing was done');
  }
}
