import { memoryStore, type StoredRecord } from '@transitd/storage-fsm';
import { clockOf } from '../../../process/test/test-clock.ts';
import type { KeySources } from '../../src/auth/jwt-keys.ts';
import { initialAccess, noDisputes, openAccess, type Principal, type StoredMount } from '../../src/index.ts';
import { gatedStore } from '../gated-store.ts';

/** Cheap hashing, since tests make many guesses. */
const light = { cost: 16, blockSize: 8, parallelization: 1 };

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
    passwordWork: light,
  });
  const { logins, tokens } = access;
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
  return { ...access, store, clock, mount, login, who, records, swept };
}
