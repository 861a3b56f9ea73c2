import { initialAccess, type KeySources, noDisputes, openAccess, type Principal, type StoredMount } from '@transitd/access';
import { memoryStore, type StoredRecord } from '@transitd/storage-fsm';
import { gatedStore } from '../../../access/test/gated-store.ts';
import { clockOf } from '../../../process/test/test-clock.ts';
import type { AppRoles } from '../../src/auth/approle/logins.ts';
import type { JwtLogins } from '../../src/auth/jwt/logins.ts';
import type { Userpass } from '../../src/auth/userpass/logins.ts';
import { lightMethods } from '../light-methods.ts';

/** Opens access with one auth method enabled at `m`, and a clock that the test sets. */
export async function withMethod(type: string, sources?: KeySources, clockDisputes = noDisputes) {
  const store = gatedStore(memoryStore());
  const clock = { now: 1_700_000_000_000 };
  await store.commit({ conditions: [], writes: initialAccess({ now: clock.now }).writes });
  const access = openAccess({
    store,
    clock: clockOf(() => clock.now),
    clockDisputes,
    ...(sources && { sources }),
    methods: lightMethods,
  });
  const { logins, tokens } = access;
  const [approle, jwt, userpass] = ['approle', 'jwt', 'userpass'].map((each) => logins.opened(each)) as [
    AppRoles,
    JwtLogins,
    Userpass,
  ];
  await logins.mounts.enable('m', type, {});
  const mount = async (path = 'm'): Promise<StoredMount> => {
    const found = await logins.mounts.find(path);
    if (found === undefined) throw new Error('no such method');
    return found;
  };
  const login = async (path = 'auth/m/login', address = '192.0.2.1') => ({ mount: await mount(), path, address });
  const who = async (token: string): Promise<Principal | undefined> => tokens.authenticate(token);
  const records = async (prefix: string): Promise<readonly (StoredRecord & { path: string })[]> =>
    (await store.range({ prefix, limit: 1000 })).records;
  /** Sweeps until nothing is left to delete. */
  const swept = async (): Promise<void> => {
    for (let idle = 0; idle < 3; ) {
      const removed = (await logins.sweep(50)) + (await access.registry.sweep(50)).removed;
      idle = removed === 0 ? idle + 1 : 0;
    }
  };
  return { ...access, approle, jwt, userpass, store, clock, mount, login, who, records, swept };
}
