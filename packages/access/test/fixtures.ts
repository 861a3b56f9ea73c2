import { systemClock } from '@transitd/process';
import { memoryStore, type StoredRecord } from '@transitd/storage-fsm';
import { clockOf } from '../../process/test/test-clock.ts';
import {
  AccessError,
  DisputedDates,
  initialAccess,
  noDisputes,
  Policies,
  type Principal,
  type TokenLimits,
  TokenRegistry,
  type TokenRequest,
  Tokens,
} from '../src/index.ts';
import { gatedStore } from './gated-store.ts';

export const hour = 3600;
export const longest = 768 * hour;

/** Runs `during` with the clock a day ahead. */
export async function ahead<T>(clock: { now: number }, during: () => Promise<T>): Promise<T> {
  const right = clock.now;
  clock.now += 24 * hour * 1000;
  try {
    return await during();
  } finally {
    clock.now = right;
  }
}

/** Opens tokens over an in-memory store, with a clock that the test sets. */
export async function setup(limits: TokenLimits = { defaultTtlS: longest, maxTtlS: longest }, disputes = noDisputes) {
  const store = gatedStore(memoryStore());
  const clock = { now: 1_000_000 };
  const { rootToken, writes } = initialAccess({ now: clock.now });
  await store.commit({ conditions: [], writes });
  const policies = new Policies({ store, clock: systemClock });
  const tokens = new Tokens({ store, policies, clock: clockOf(() => clock.now) });
  const disputedDates = new DisputedDates(disputes);
  const registry = new TokenRegistry({ store, tokens, policies, clock: clockOf(() => clock.now), disputedDates, limits });
  const who = async (token: string): Promise<Principal> => {
    const principal = await tokens.authenticate(token);
    if (principal === undefined) throw new Error('no such token');
    return principal;
  };
  const create = async (
    request: TokenRequest = {},
    {
      by = rootToken,
      privileged = by === rootToken,
      makesOrphans = false,
      role,
    }: { by?: string; privileged?: boolean; makesOrphans?: boolean; role?: string } = {},
  ) =>
    registry.create(request, {
      principal: await who(by),
      privileged,
      makesOrphans,
      path: role === undefined ? 'auth/token/create' : `auth/token/create/${role}`,
      ...(role !== undefined && { role }),
    });
  const good = async (token: string): Promise<boolean> => (await tokens.authenticate(token)) !== undefined;
  const records = async (prefix: string): Promise<readonly (StoredRecord & { path: string })[]> => {
    const all = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page: Awaited<ReturnType<typeof store.range>> = await store.range({ prefix, ...(after !== '' && { after }) });
      all.push(...page.records);
      after = page.next;
    }
    return all;
  };
  return { store, clock, rootToken, policies, tokens, registry, disputedDates, create, who, good, records };
}

/** Returns the code and message of a refusal; `none` when there was none. */
export async function refusal(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof AccessError) return `${error.code}: ${error.message}`;
    throw error;
  }
  return 'none';
}
