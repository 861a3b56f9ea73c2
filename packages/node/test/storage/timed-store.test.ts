import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { timedStore } from '../../src/storage/timed-store.ts';

const value = Buffer.from('v');
const write = (path: string, written: Buffer | null) => ({ conditions: [], writes: [{ path, value: written }] });

describe('timedStore', () => {
  it('reports the time of every operation, failed ones included, and a commit that only deletes as a delete', async () => {
    const operations: string[] = [];
    const memory = memoryStore();
    const broken = { ...memory, get: () => Promise.reject(new Error('sealed')) } as Store;
    const [store, failing] = [memory, broken].map((each) =>
      timedStore(each, (operation, ms) => {
        expect(ms).to.be.at.least(0);
        operations.push(operation);
      }),
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
    expect(operations).to.deep.equal(['put', 'put', 'delete', 'get', 'list', 'get']);
  });
});
