import { expect } from 'chai';
import { pluginRoutes } from '../../src/sys/plugins.ts';

describe('reloading plugins', () => {
  it('reloads a mount once, even if it is named repeatedly', async () => {
    let reloads = 0;
    const engine = {
      reload: async () => {
        reloads += 1;
      },
    };
    const mounts = { list: [{ path: 'mnt', type: 'transit' }], engines: new Map([['mnt', engine]]) };
    const operation = pluginRoutes[0]?.operations.POST;
    if (operation?.access !== 'token') throw new Error('reload is no guarded operation');
    const call = { verb: 'POST', path: 'sys/plugins/reload/backend', query: {}, params: {} } as const;
    const body = { mounts: ['mnt', 'mnt/', ' mnt'] };
    await operation.run({ services: { mounts } } as never, { ...call, body } as never);
    expect(reloads).to.equal(1);
  });
});
