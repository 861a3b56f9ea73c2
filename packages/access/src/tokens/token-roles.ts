import { type Condition, changeRecords, namesBelow, type Store } from '@transitd/storage-fsm';
import { conflict, invalidRequest } from '../values/errors.ts';
import { isRoleName } from '../values/names.ts';
import { changedTokenRole, decodeTokenRole, encodeTokenRole, type TokenRole, type TokenRoleChange } from './token-role.ts';

const prefix = 'access/role/';
const recordBytesMax = 64 * 1024;

/** A role, with a condition that holds while the role is unchanged. */
export interface StoredRole {
  readonly role: TokenRole;
  readonly condition: Condition;
}

/** The token roles in the store. */
export class TokenRoles {
  readonly #store: Store;

  constructor({ store }: { readonly store: Store }) {
    this.#store = store;
  }

  /** Finds a role by name. @throws AccessError `record_unreadable`; StoreError */
  async find(name: string): Promise<StoredRole | undefined> {
    const path = prefix + name;
    const record = isRoleName(name) ? await this.#store.get(path) : undefined;
    return record && { role: decodeTokenRole(record.value), condition: { path, revision: record.revision } };
  }

  /** Creates a role or changes the given fields. @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError */
  async write(name: string, change: TokenRoleChange): Promise<void> {
    if (!isRoleName(name)) throw invalidRequest('a role name must have 1 to 128 letters, digits, "_", ".", "@" or "-"');
    const next = async () => {
      const present = await this.find(name);
      const value = encodeTokenRole(changedTokenRole(name, present?.role, change));
      if (value.length > recordBytesMax) throw invalidRequest(`a role must have at most ${recordBytesMax} bytes`);
      const conditions = [present?.condition ?? { path: prefix + name, revision: 0 }];
      return { conditions, writes: [{ path: prefix + name, value }] };
    };
    await changeRecords(this.#store, next, () => conflict('the role'));
  }

  /** Deletes a role if it exists. Its tokens stay valid. @throws StoreError */
  async delete(name: string): Promise<void> {
    if (isRoleName(name)) await this.#store.commit({ conditions: [], writes: [{ path: prefix + name, value: null }] });
  }

  /** Returns all names, sorted. @throws StoreError */
  async list(): Promise<string[]> {
    return (await namesBelow(this.#store, prefix)).sort();
  }
}
