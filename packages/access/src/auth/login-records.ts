import { type Condition, changeRecords, namesBelow, type Store, untilCommitted, type Write } from '@transitd/storage-fsm';
import type { StoredMount } from '../mounts/auth-mounts.ts';
import { type AccessError, conflict, invalidRequest } from '../values/errors.ts';
import { decodeJson, encodeJson } from '../values/json-record.ts';
import { isRoleName, loginName } from '../values/names.ts';

export const loginPrefix = 'access/login/';

/** Returns the path prefix of the records of one auth method. */
export const loginRecordsPrefix = (mountId: string): string => `${loginPrefix}${mountId}/`;

/** A record, with a condition that holds while the record is unchanged. */
export interface Stored<T> {
  readonly value: T;
  readonly condition: Condition;
}

/** A change of a record, with additional conditions and writes for the same transaction. */
interface RecordChange<T> {
  readonly value: T;
  readonly conditions?: readonly Condition[];
  readonly writes?: readonly Write[];
}

const recordBytesMax = 64 * 1024;

const recordConflict = (): AccessError => conflict('this user or role');

/** Records of one kind, such as the users of an auth method, by name. Names are case-insensitive. */
export class LoginRecords<T extends object> {
  readonly #store: Store;
  readonly #kind: string;
  readonly #example: T;

  /** @param example - has the shape of every record */
  constructor({ store, kind, example }: { readonly store: Store; readonly kind: string; readonly example: T }) {
    this.#store = store;
    this.#kind = kind;
    this.#example = example;
  }

  pathOf(mountId: string, name: string): string {
    return `${loginRecordsPrefix(mountId)}${this.#kind}/${loginName(name)}`;
  }

  /** Finds a record by name. @throws AccessError `record_unreadable`; StoreError */
  async find(mountId: string, name: string): Promise<Stored<T> | undefined> {
    if (!isRoleName(name)) return undefined;
    const path = this.pathOf(mountId, name);
    const record = await this.#store.get(path);
    return record && { value: decodeJson(record.value, this.#example), condition: { path, revision: record.revision } };
  }

  /**
   * Creates or changes a record, on condition that the auth method and the record are unchanged.
   * @param next - computes the change from the present record; called again after a conflict
   * @throws AccessError `invalid_request`, `too_many_conflicts`, also when the auth method has changed; StoreError; any error of
   * `next`
   */
  async change(
    mount: StoredMount,
    name: string,
    next: (present: T | undefined) => RecordChange<T> | Promise<RecordChange<T>>,
  ): Promise<void> {
    if (!isRoleName(name)) throw invalidRequest('a name must have 1 to 128 letters, digits, "_", ".", "@" or "-"');
    await untilCommitted(async () => {
      const present = await this.find(mount.id, name);
      const { value, conditions: more = [], writes = [] } = await next(present?.value);
      const encoded = encodeJson(value);
      if (encoded.length > recordBytesMax)
        throw invalidRequest(`the settings of a user or role must have at most ${recordBytesMax} bytes`);
      const path = this.pathOf(mount.id, name);
      const conditions = [mount.condition, present?.condition ?? { path, revision: 0 }, ...more];
      const { outcome } = await this.#store.commit({ conditions, writes: [{ path, value: encoded }, ...writes] });
      if (outcome === 'committed') return true;
      await this.#requireMount(mount);
      return undefined;
    }, recordConflict);
  }

  /**
   * Deletes a record if it exists.
   * @param also - returns further writes of the transaction
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  async delete(mountId: string, name: string, also: (present: T) => readonly Write[] = () => []): Promise<void> {
    const next = async () => {
      const present = await this.find(mountId, name);
      if (present === undefined) return undefined;
      const { value, condition } = present;
      return { conditions: [condition], writes: [{ path: condition.path, value: null }, ...also(value)] };
    };
    await changeRecords(this.#store, next, recordConflict);
  }

  /** Returns all names, sorted. @throws StoreError */
  async list(mountId: string): Promise<string[]> {
    return (await namesBelow(this.#store, this.pathOf(mountId, ''))).sort();
  }

  async #requireMount({ condition }: StoredMount): Promise<void> {
    const record = await this.#store.get(condition.path);
    if (record?.revision !== condition.revision) throw conflict('the auth method', { by: 'another request' });
  }
}
