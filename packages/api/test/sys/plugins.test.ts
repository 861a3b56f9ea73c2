import { expect } from 'chai';
import { pluginRoutes } from '../../src/sys/plugins.ts';
import { served } from '../served.ts';

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

  it('reloads by the path of newer command lines, under both kinds, and a denial of one path applies to all', async () => {
    const server = await served();
    try {
      const paths = ['backend', 'secret/transit', 'unknown/transit'].map((end) => `sys/plugins/reload/${end}`);
      const body = { plugin: 'transit' };
      for (const path of paths) {
        const answer = await server.ask(`POST ${path}`, { body });
        expect([answer.status, typeof answer.body.data.reload_id], path).to.deep.equal([200, 'string']);
      }
      for (const end of ['auth/transit', 'secret/kv'])
        expect((await server.ask(`POST sys/plugins/reload/${end}`, { body: {} })).status, end).to.equal(400);
      for (const denied of paths) {
        const policy = `path "sys/*" { capabilities = ["update", "sudo"] }\npath "${denied}" { capabilities = ["deny"] }`;
        await server.ask('POST sys/policies/acl/p', { body: { policy } });
        const { auth } = (await server.ask('POST auth/token/create', { body: { policies: ['p'] } })).body;
        for (const path of paths)
          expect((await server.ask(`POST ${path}`, { token: auth.client_token, body })).status, path).to.equal(403);
      }
    } finally {
      await server.close();
    }
  });
});
