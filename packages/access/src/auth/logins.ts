import type { Condition, Write } from '@transitd/storage-fsm';
import { AuthMounts } from '../mounts/auth-mounts.ts';
import { AccessError } from '../values/errors.ts';
import type { LoginRecord, MethodServices, MethodType, OpenedMethod } from './auth-method.ts';
import { loginPrefix } from './login-records.ts';
import { OutsideWaits } from './outside-waits.ts';

/** The auth methods. */
export class Logins {
  readonly mounts: AuthMounts;
  readonly #services: MethodServices;
  readonly #opened: ReadonlyMap<string, OpenedMethod>;
  /** Path at which the last step of the sweep stopped; empty to start over. */
  #cursor = '';

  constructor({ methods, ...given }: Omit<MethodServices, 'waits'> & { readonly methods: readonly MethodType[] }) {
    const services = { ...given, waits: new OutsideWaits() };
    this.mounts = new AuthMounts({ store: services.store, types: methods });
    this.#services = services;
    this.#opened = new Map(methods.map((method) => [method.type, method.open(services)]));
  }

  /** Returns the records and logins of the auth methods of a type; undefined for a type that this node does not have. */
  opened(type: string): OpenedMethod | undefined {
    return this.#opened.get(type);
  }

  /**
   * Deletes records of disabled auth methods, and those that their method declares spent. None of them can be used any longer; this frees
   * their space. Only the active node calls it. Returns the number of deleted records.
   * @param limit - number of records to check
   */
  async sweep(limit: number): Promise<number> {
    const { store, clock } = this.#services;
    const { records } = await store.range({ prefix: loginPrefix, limit, ...(this.#cursor !== '' && { after: this.#cursor }) });
    // The methods are read after the records. If the method of a record is missing now, the method was disabled, and its id is never
    // used again.
    const types = new Map((await this.mounts.list()).map(({ id, type }) => [id, type]));
    const conditions: Condition[] = [];
    const writes: Write[] = [];
    for (const { path, value, revision } of records) {
      const [mountId = '', kind = '', name = ''] = path.slice(loginPrefix.length).split('/');
      const type = types.get(mountId);
      const record = { mountId, kind, name, value };
      if (type !== undefined && !(await isSpent(this.#opened.get(type), record, clock.dueMs()))) continue;
      conditions.push({ path, revision });
      writes.push({ path, value: null });
    }
    const isDone = writes.length > 0 && (await store.commit({ conditions, writes })).outcome === 'committed';
    this.#cursor = records.length < limit ? '' : (records.at(-1)?.path ?? '');
    return isDone ? writes.length : 0;
  }

  close(): void {
    for (const method of this.#opened.values()) method.close();
  }
}

async function isSpent(method: OpenedMethod | undefined, record: LoginRecord, now: number): Promise<boolean> {
  try {
    return (await method?.isSpent?.(record, now)) ?? false;
  } catch (error) {
    if (error instanceof AccessError) return false; // a newer version wrote the record in an unknown format: keep it
    throw error;
  }
}
