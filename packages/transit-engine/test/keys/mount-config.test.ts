import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { newEngine } from '../fixtures.ts';

describe('the cache configuration', () => {
  it('is stored at once, and applied on every node after a reload', async () => {
    const store = memoryStore();
    const [one, other] = [newEngine({ store }).engine, newEngine({ store }).engine];
    const names = Array.from({ length: 20 }, (_, index) => `k${index}`);
    for (const name of names) await one.createKey(name, {});
    const kept = async (): Promise<number> => {
      for (const name of names) await other.keyExists(name);
      return names.filter((name) => other.cachedRevision(name) !== undefined).length;
    };
    expect(await one.writeCacheConfig({ size: 10 })).to.deep.equal({ size: 10 });
    expect(await other.readCacheConfig()).to.deep.equal({ size: 10 });
    expect(await kept()).to.equal(20);
    await one.reload();
    expect(await kept()).to.equal(10);
    await one.writeCacheConfig({ size: 0 });
    await one.reload();
    expect(await kept()).to.equal(20);
  });

  it('refuses a size that is too small', async () => {
    const { engine } = newEngine();
    for (const size of [9, 1, -1]) {
      let message = '';
      await engine.writeCacheConfig({ size }).catch((error: Error) => {
        message = error.message;
      });
      expect(message).to.equal('size must be 0 or a value greater or equal to 10');
    }
  });
});
