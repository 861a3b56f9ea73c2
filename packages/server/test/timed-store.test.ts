import { timedStore } from '@transitd/node';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { Metrics } from '../src/metrics.ts';

const value = Buffer.from('v');
const write = (path: string, written: Buffer | null) => ({ conditions: [], writes: [{ path, value: written }] });

describe('barrier metrics', () => {
  it('are summaries in milliseconds with the names that Vault uses, failures included', async () => {
    const metrics = new Metrics('vault', {
      unsealed: () => true,
      active: () => true,
      raft: () => undefined,
      barrierEncryptions: () => 0,
    });
    const memory = memoryStore();
    const broken = { ...memory, get: () => Promise.reject(new Error('sealed')) } as Store;
    const [store, failing] = [memory, broken].map((each) =>
      timedStore(each, (operation, ms) => metrics.observer.barrier(operation, ms)),
    );
    await store?.commit(write('a/b', value));
    await store?.commit({
      conditions: [],
      writes: [
        { path: 'a/c', value },
        { path: 'a/b', value: null },
      ],
    });
    await store?.commit(write('a/c', null));
    await store?.get('a/b');
    await store?.range({ prefix: 'a/' });
    const refused = await failing?.get('a/b').catch((error: unknown) => String(error));
    expect(refused).to.equal('Error: sealed');
    const text = await metrics.prometheus();
    for (const [operation, count] of Object.entries({ get: 2, put: 2, list: 1, delete: 1 })) {
      expect(text).to.match(new RegExp(`^vault_barrier_${operation}_count ${count}$`, 'm'));
      expect(text).to.match(new RegExp(`^vault_barrier_${operation}\\{quantile="0.99"\\} `, 'm'));
    }
  });
});
