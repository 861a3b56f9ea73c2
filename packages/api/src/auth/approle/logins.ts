import { randomUUID } from 'node:crypto';
import {
  AccessError,
  type ClockDispute,
  changedRole,
  conflict,
  type DisputedDates,
  decodeJson,
  displayNameOf,
  earlierBy,
  encodeJson,
  equalizeReads,
  type Issued,
  invalidRequest,
  type Login,
  type LoginRecord,
  LoginRecords,
  loginIdOf,
  loginName,
  loginRecordsPrefix,
  type MethodServices,
  type OpenedMethod,
  refusedBy,
  type Stored,
  type StoredMount,
  type TokenRegistry,
  type Tokens,
} from '@transitd/access';
import { accessTurns, NamedLocks, runInSlices, sorted, TimeSlice } from '@transitd/event-loop';
import { commonCidrs, type RecordClock, withinCidrs } from '@transitd/process';
import { changeRecords, pagesBelow, type Store, untilCommitted, type Write } from '@transitd/storage-fsm';
import { type AppRole, type AppRoleChange, checkRole, idCharsMax, newRole } from './role.ts';
import { decodeSecretId, newSecret, type SecretId, type SecretIdName, type SecretIdRequest, useWrites } from './secret-id.ts';

const pointerExample = { name: '' };

/** Logins of machines by a role id, which is not secret, and a secret id. Only keyed hashes of secret ids are stored. */
export class AppRoles implements OpenedMethod {
  readonly roles: LoginRecords<AppRole>;
  readonly #store: Store;
  readonly #tokens: Tokens;
  readonly #registry: TokenRegistry;
  readonly #clock: RecordClock;
  readonly #disputedDates: DisputedDates;
  /** Serializes logins with one secret id, so that concurrent uses do not conflict. */
  readonly #locks = new NamedLocks();

  constructor({ store, tokens, registry, clock, disputedDates }: MethodServices) {
    this.roles = new LoginRecords({ store, kind: 'role', example: newRole });
    this.#store = store;
    this.#tokens = tokens;
    this.#registry = registry;
    this.#clock = clock;
    this.#disputedDates = disputedDates;
  }

  /**
   * Creates a role with a random role id, or changes the given fields.
   * @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError
   */
  write(mount: StoredMount, name: string, change: AppRoleChange): Promise<void> {
    return this.#write(mount, name, change, () => ({ ...newRole, key: randomUUID(), roleId: randomUUID() }));
  }

  /**
   * Changes the given fields of an existing role.
   * @throws AccessError `invalid_request`, `not_found`, `too_many_conflicts`; StoreError
   */
  update(mount: StoredMount, name: string, change: AppRoleChange): Promise<void> {
    return this.#write(mount, name, change, () => {
      throw noSuchRole();
    });
  }

  /** @param absent - called when the role does not exist */
  async #write(mount: StoredMount, name: string, change: AppRoleChange, absent: () => AppRole): Promise<void> {
    const key = await this.#tokens.key();
    await this.roles.change(mount, name, async (present) => {
      const role: AppRole = changedRole(present ?? absent(), change);
      checkRole(role);
      if (role.roleId === present?.roleId) return { value: role };
      // If two roles had the same role id, anyone who knows it could log in as either role.
      const at = roleIdPath(mount, key, role.roleId);
      if ((await this.#store.get(at)) !== undefined) throw invalidRequest('the role_id is already in use');
      const writes: Write[] = [{ path: at, value: encodeJson({ name: loginName(name) }) }];
      if (present !== undefined) writes.push({ path: roleIdPath(mount, key, present.roleId), value: null });
      return { value: role, conditions: [{ path: at, revision: 0 }], writes };
    });
  }

  /**
   * Deletes a role. This revokes its secret ids too, because they refer to the key of the role.
   * @throws AccessError `too_many_conflicts`; StoreError
   */
  async delete(mount: StoredMount, name: string): Promise<void> {
    const key = await this.#tokens.key();
    await this.roles.delete(mount.id, name, ({ roleId }) => [{ path: roleIdPath(mount, key, roleId), value: null }]);
  }

  /**
   * Creates a secret id. Only this call returns it.
   * @throws AccessError `invalid_request`, `not_found`, `too_many_conflicts`; StoreError
   */
  async createSecretId(
    mount: StoredMount,
    name: string,
    request: SecretIdRequest,
  ): Promise<{ readonly secretId: string; readonly secret: SecretId }> {
    const role = await this.#requireRole(mount, name);
    if (!role.value.bindSecretId) throw invalidRequest('bind_secret_id is not set on the role'); // no login would check the secret id
    const secretId = request.secretId ?? randomUUID();
    if (secretId === '' || secretId.length > idCharsMax)
      throw invalidRequest(`a secret id must have 1 to ${idCharsMax} characters`);
    const dispute = this.#disputedDates.current();
    const secret = newSecret(role.value, request, this.#clock.utcMs());
    const key = await this.#tokens.key();
    const id = loginIdOf(key, 'secret-id', secretId);
    const path = secretPath(mount, name, id);
    const pointer = secretAccessorPath(mount, name, loginIdOf(key, 'secret-accessor', secret.accessor));
    const conditions = [mount.condition, role.condition, { path, revision: 0 }];
    const writes = [
      { path, value: encodeJson(secret) },
      { path: pointer, value: encodeJson({ name: id }) },
    ];
    if ((await this.#store.commit({ conditions, writes })).outcome === 'committed') {
      if (dispute !== undefined) this.#noteSecret(path, secret, dispute);
      return { secretId, secret };
    }
    if ((await this.#store.get(path)) !== undefined) throw invalidRequest('the secret id is already in use');
    throw secretConflict();
  }

  /** Remembers a secret id whose dates may have to be corrected, because the clocks disagreed when it was dated. */
  #noteSecret(path: string, secret: SecretId, dispute: ClockDispute): void {
    const written = { createdMs: secret.createdMs, renewedMs: 0, expiresMs: secret.expiresMs };
    this.#disputedDates.note(path, dispute, {
      written,
      byEarlier: earlierBy(written, dispute),
      rewrite: async (corrected) => {
        const next = async () => {
          const stored = await this.#store.get(path);
          if (stored === undefined) return undefined;
          const present = decodeSecretId(stored.value);
          const { createdMs, expiresMs } = corrected({ ...present, renewedMs: 0 });
          if (createdMs === present.createdMs && expiresMs === present.expiresMs) return undefined;
          const value = encodeJson({ ...present, createdMs, expiresMs });
          return { conditions: [{ path, revision: stored.revision }], writes: [{ path, value }] };
        };
        await changeRecords(this.#store, next, secretConflict);
      },
    });
  }

  /** Finds a secret id of a role; undefined when it does not exist or has expired. @throws AccessError `not_found`; StoreError */
  async findSecretId(mount: StoredMount, name: string, secretName: SecretIdName): Promise<SecretId | undefined> {
    return (await this.#findSecret(mount, await this.#requireRole(mount, name), name, secretName))?.value;
  }

  /** Deletes a secret id if it exists, expired or not. @throws AccessError `not_found`, `too_many_conflicts`; StoreError */
  async destroySecretId(mount: StoredMount, name: string, secretName: SecretIdName): Promise<void> {
    const key = await this.#tokens.key();
    const next = async () => {
      await this.#requireRole(mount, name);
      const found = await this.#storedSecret(mount, name, secretName);
      if (found === undefined) return undefined;
      const pointer = secretAccessorPath(mount, name, loginIdOf(key, 'secret-accessor', found.value.accessor));
      return {
        conditions: [found.condition],
        writes: [found.condition.path, pointer].map((path) => ({ path, value: null })),
      };
    };
    await changeRecords(this.#store, next, secretConflict);
  }

  /** Returns the accessors of a role's secret ids, sorted. @throws AccessError `not_found`; StoreError */
  async secretIdAccessors(mount: StoredMount, name: string): Promise<string[]> {
    const { value: role } = await this.#requireRole(mount, name);
    const accessors: string[] = [];
    for await (const records of pagesBelow(this.#store, { prefix: secretPath(mount, name, '') }))
      for (const { value } of records) {
        const secret = decodeSecretId(value);
        if (secret.roleKey === role.key) accessors.push(secret.accessor);
      }
    return runInSlices(sorted(accessors), new TimeSlice(accessTurns));
  }

  /**
   * Logs in. One log entry creates the token and counts the use of the secret id.
   * @throws AccessError `invalid_request`, `too_many_conflicts`; StoreError
   */
  async login(login: Login, roleId: string, secretId: string): Promise<Issued> {
    if (roleId === '') throw invalidRequest('missing role_id', refusedBy('role_id'));
    if (roleId.length > idCharsMax) throw invalidCredentials('role_id');
    if (secretId.length > idCharsMax) throw invalidCredentials('secret_id');
    const key = await this.#tokens.key();
    const attempt = () => this.#login(login, key, roleId, secretId);
    return this.#locks.run(loginIdOf(key, 'secret-id', secretId), () => untilCommitted(attempt, secretConflict));
  }

  /** Returns the name of the role with a role id; empty for none. @throws StoreError */
  async roleNameOf(mount: StoredMount, roleId: string): Promise<string> {
    return (await this.#nameOf(mount, await this.#tokens.key(), roleId.slice(0, idCharsMax))) ?? '';
  }

  /** Returns whether a secret id has expired or its role was deleted, and whether the secret id of an accessor no longer exists. */
  async isSpent({ mountId, kind, name, value }: LoginRecord, now: number): Promise<boolean> {
    if (kind === 'secret-accessor') {
      const { name: secret } = decodeJson(value, pointerExample);
      return (await this.#store.get(secretPath({ id: mountId }, name, secret))) === undefined;
    }
    if (kind !== 'secret') return false;
    const { roleKey, expiresMs } = decodeSecretId(value);
    if (expiresMs !== 0 && expiresMs <= now) return true;
    return (await this.roles.find(mountId, name))?.value.key !== roleKey;
  }

  close(): void {
    // It holds nothing in memory.
  }

  async #login({ mount, path, address }: Login, key: Uint8Array, roleId: string, secretId: string): Promise<Issued | undefined> {
    const name = await this.#nameOf(mount, key, roleId);
    const role = name === undefined ? undefined : await this.roles.find(mount.id, name);
    if (name === undefined || role?.value.roleId !== roleId) {
      await this.#equalizeReads(mount, key, secretId);
      throw wrongPair(secretId, 'role_id');
    }
    const secret = role.value.bindSecretId ? await this.#storedSecret(mount, name, { secretId }) : undefined;
    const fault = role.value.bindSecretId ? this.#faultOf(secret, role.value) : undefined;
    if (fault !== undefined) throw wrongPair(secretId, fault);
    const { secretIdBoundCidrs, token } = role.value;
    for (const [constraint, cidrs] of [
      ['secret_id_bound_cidrs', secretIdBoundCidrs],
      ['cidr_list', secret?.value.cidrs ?? []],
      ['token_bound_cidrs', token.boundCidrs],
      ['token_bound_cidrs', secret?.value.tokenBoundCidrs ?? []],
    ] as const)
      if (!withinCidrs(cidrs, address)) throw wrongPair(secretId, constraint); // so nobody can test ids from there
    // Both lists contain the address, so their intersection is not empty.
    const boundCidrs = commonCidrs(token.boundCidrs, secret?.value.tokenBoundCidrs ?? []);
    return this.#registry.issue({
      mount,
      settings: { ...token, boundCidrs },
      displayName: displayNameOf(mount),
      meta: { ...secret?.value.meta, role_name: name },
      path,
      source: role.condition,
      ...(secret && {
        conditions: [secret.condition],
        writes: useWrites(secret, secretAccessorPath(mount, name, loginIdOf(key, 'secret-accessor', secret.value.accessor))),
      }),
    });
  }

  /** Finds the role with a role id. The work is the same whether or not the role exists. */
  async #nameOf(mount: StoredMount, key: Uint8Array, roleId: string): Promise<string | undefined> {
    const path = roleIdPath(mount, key, roleId);
    const pointer = await this.#store.get(path);
    await equalizeReads(this.#store, mount, path, pointer !== undefined);
    return pointer && decodeJson(pointer.value, pointerExample).name;
  }

  /**
   * Makes the same reads as a login with a wrong secret id for an existing role: an existing record (the role) and a missing record
   * (the secret id).
   */
  async #equalizeReads(mount: StoredMount, key: Uint8Array, secretId: string): Promise<void> {
    const path = secretPath(mount, 'none', loginIdOf(key, 'secret-id', secretId));
    await equalizeReads(this.#store, mount, path, false);
    await this.#store.get(path);
  }

  async #findSecret(
    mount: StoredMount,
    role: Stored<AppRole>,
    name: string,
    secretName: SecretIdName,
  ): Promise<Stored<SecretId> | undefined> {
    const found = await this.#storedSecret(mount, name, secretName);
    return this.#faultOf(found, role.value) === undefined ? found : undefined;
  }

  /** Returns why a secret id is not valid for a role, for the audit log; undefined if it is valid. */
  #faultOf(found: Stored<SecretId> | undefined, { key }: AppRole): 'secret_id' | 'secret_id_ttl' | undefined {
    if (found?.value.roleKey !== key) return 'secret_id';
    const { expiresMs } = found.value;
    return expiresMs === 0 || this.#clock.utcMs() < expiresMs ? undefined : 'secret_id_ttl';
  }

  /** Reads a secret id, valid or not. */
  async #storedSecret(mount: StoredMount, name: string, secretName: SecretIdName): Promise<Stored<SecretId> | undefined> {
    const key = await this.#tokens.key();
    const id =
      'secretId' in secretName
        ? loginIdOf(key, 'secret-id', secretName.secretId)
        : await this.#secretIdOfAccessor(mount, name, key, secretName.accessor);
    const path = secretPath(mount, name, id ?? '');
    const record = id === undefined ? undefined : await this.#store.get(path);
    if (record === undefined) return undefined;
    return { value: decodeSecretId(record.value), condition: { path, revision: record.revision } };
  }

  async #secretIdOfAccessor(mount: StoredMount, name: string, key: Uint8Array, accessor: string): Promise<string | undefined> {
    const record = await this.#store.get(secretAccessorPath(mount, name, loginIdOf(key, 'secret-accessor', accessor)));
    return record && decodeJson(record.value, pointerExample).name;
  }

  async #requireRole(mount: StoredMount, name: string): Promise<Stored<AppRole>> {
    const role = await this.roles.find(mount.id, name);
    if (role === undefined) throw noSuchRole();
    return role;
  }
}

const roleIdPath = ({ id }: StoredMount, key: Uint8Array, roleId: string): string =>
  `${loginRecordsPrefix(id)}role-id/${loginIdOf(key, 'role-id', roleId)}`;
const secretPath = ({ id }: Pick<StoredMount, 'id'>, name: string, secret: string): string =>
  `${loginRecordsPrefix(id)}secret/${loginName(name)}/${secret}`;
const secretAccessorPath = ({ id }: StoredMount, name: string, accessor: string): string =>
  `${loginRecordsPrefix(id)}secret-accessor/${loginName(name)}/${accessor}`;

const noSuchRole = (): AccessError => new AccessError('not_found', 'no such role');
const invalidCredentials = (constraint: string): AccessError =>
  invalidRequest('invalid role or secret ID', refusedBy(constraint));

/**
 * Returns the error for a role that is unknown or needs another secret id. It is the same for both, so nobody can find out role ids.
 * @param constraint - what refused the pair, for the audit log
 */
const wrongPair = (secretId: string, constraint: string): AccessError =>
  secretId === '' ? invalidRequest('missing secret_id', refusedBy(constraint)) : invalidCredentials(constraint);
const secretConflict = (): AccessError => conflict('the role or its secret id');
