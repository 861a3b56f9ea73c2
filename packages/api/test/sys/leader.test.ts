import { expect } from 'chai';
import { statusRoutes } from '../../src/sys/status.ts';
import { TestMetrics } from '../test-metrics.ts';

describe('the leader as known to a node', () => {
  it('is refused by a sealed node with the text that the status commands of the peers look for', () => {
    const operation = statusRoutes(new TestMetrics()).find(({ path }) => path === 'sys/leader')?.operations.GET;
    if (operation?.access !== 'open') throw new Error('sys/leader is no open operation');
    const ask = (initialized: boolean) => () =>
      operation.run({ initialized, member: undefined } as never, { params: {}, body: {} } as never, undefined);
    expect(ask(true)).to.throw('transitd is sealed (Vault is sealed)');
    expect(ask(false)).to.throw('transitd is not initialized (Vault is sealed)');
  });
});
