import { expect } from 'chai';
import { Metrics } from '../src/metrics/metrics.ts';

describe('metrics of the barrier', () => {
  it('are histograms in milliseconds with the names that Vault and OpenBao use', async () => {
    const metrics = new Metrics('vault', { node: () => undefined });
    for (const operation of ['put', 'put', 'delete', 'get', 'list', 'get'] as const) metrics.observer.barrier(operation, 1);
    const text = await metrics.prometheus();
    for (const [operation, count] of Object.entries({ get: 2, put: 2, list: 1, delete: 1 })) {
      expect(text).to.match(new RegExp(`^vault_barrier_${operation}_count ${count}$`, 'm'));
      expect(text).to.match(new RegExp(`^vault_barrier_${operation}_bucket\\{le="1"\\} ${count}$`, 'm'));
    }
  });
});
