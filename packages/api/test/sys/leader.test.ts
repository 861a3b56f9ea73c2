import { expect } from 'chai';
import { statusRoutes } from '../../src/sys/status.ts';
import { TestMetrics } from '../test-metrics.ts';

describe('the leader as known to a node', () => {
  it('is refused by a sealed node with the text that the status commands of the peers look for', async () => {
    const operation = statusRoutes(new TestMetrics()).find(({ path }) => path === 'sys/leader')?.operations.GET;
    if (operation?.access !== 'open') throw new Error('sys/leader is no open operation');
    const ask = async (initialized: boolean): Promise<unknown> => {
      try {
        return await operation.run({ initialized, member: undefined } as never, { params: {}, body: {} } as never, undefined);
      } catch (error) {
        return String(error);
      }
    };
    expect(await ask(true)).to.contain('transitd is sealed (Vault is sealed)');
    expect(await ask(false)).to.contain('transitd is not initialized (Vault is sealed)');
  });
});
