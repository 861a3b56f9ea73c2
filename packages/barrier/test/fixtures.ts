import { memoryStore, type Store, StoreError, type Write } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../process/test/test-clock.ts';
import { Barrier, BarrierError, type BarrierOptions, type InitializeRequest } from '../src/index.ts';

export const text = (value: string): Buffer => Buffer.from(value, 'utf8');

export const write = (path: string, value: string): Write => ({ path, value: text(value) });

/** Opens a barrier over `store`, by default with a Shamir seal and a fixed time. */
export function openBarrier(store: Store, options: Partial<BarrierOptions> = {}): Promise<Barrier> {
  return Barrier.open({
    store,
    seal: { type: 'shamir' },
    valuesWritten: () => 0,
    clock: clockOf(() => 1_000_000),
    ...options,
  });
}

export const threeOfTwo: InitializeRequest = { secretShares: 3, secretThreshold: 2 };

/** Returns an unsealed barrier with three shares, two of them needed, and its store. */
export async function unsealedBarrier(options: Partial<BarrierOptions> = {}) {
  const store = options.store ?? memoryStore();
  const barrier = await openBarrier(store, options);
  const { shares } = await barrier.initialize(threeOfTwo, []);
  await unsealWith(barrier, shares.slice(0, 2));
  return { barrier, store, shares };
}

export async function unsealWith(barrier: Barrier, shares: readonly Uint8Array[]): Promise<void> {
  for (const share of shares) await barrier.unseal(share);
}

export async function put(barrier: Barrier, path: string, value: string): Promise<void> {
  expect(await barrier.store.commit({ conditions: [], writes: [write(path, value)] })).to.have.property('outcome', 'committed');
}

export async function read(barrier: Barrier, path: string): Promise<string | undefined> {
  const record = await barrier.store.get(path);
  return record && Buffer.from(record.value).toString('utf8');
}

/** Resolves with the code of the error that a promise rejects with. */
export async function codeOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof BarrierError || error instanceof StoreError) return error.code;
    throw error;
  }
  throw new Error('it did not fail');
}

/** Resolves with the message of the error that a promise rejects with. */
export async function messageOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  throw new Error('it did not fail');
}

/** Returns all records of a store, by path. */
export async function everything(store: Store): Promise<Map<string, Buffer>> {
  const { records } = await store.range({ prefix: '' });
  return new Map(records.map(({ path, value }) => [path, Buffer.from(value)]));
}
