import { expect } from 'chai';
import { allRoutes } from '../../src/routes.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

/** The parameters of a path. */
const names = (path: string): string =>
  path
    .split('/')
    .filter((part) => /^[:*]/.test(part))
    .join();

describe('an operation at several paths', () => {
  /** Operations that differ between their paths, although they share a name in the metrics. */
  const others = [
    ...['token-create', 'approle-secret-id', 'approle-secret-id-lookup', 'approle-secret-id-destroy'],
    'approle-role-field-read',
  ];

  it('declares them, unless their parameters show that they differ', () => {
    const places = new Map<string, Set<string>>();
    const undeclared = new Set<string>();
    for (const { path, operations } of allRoutes(new TestMetrics()))
      for (const operation of Object.values(operations)) {
        if (operation.access !== 'token' || others.includes(operation.name)) continue;
        const key = `${operation.name} of ${names(path)}`;
        places.set(key, (places.get(key) ?? new Set()).add(path));
        if (operation.sameAs === undefined) undeclared.add(key);
      }
    const missing = [...places].filter(([key, paths]) => paths.size > 1 && undeclared.has(key));
    expect(missing.map(([key]) => key)).to.deep.equal([]);
    expect([...places.values()].filter(({ size }) => size > 1).length).to.be.above(5);
  });

  describe('is refused if one of them is denied', () => {
    let at: Served;
    before(async () => {
      at = await served();
      await at.ask('POST sys/auth/ar', { body: { type: 'approle' } });
      await at.ask('POST auth/ar/role/admin', { body: { token_policies: ['a'] } });
      await at.ask('POST auth/ar/role/admin/secret-id', { body: {} });
    });
    after(() => at.close());

    const rights = 'capabilities = ["read", "update", "delete", "list", "sudo"]';
    const tokenWith = async (denied: string): Promise<string> => {
      const policy = `path "*" { ${rights} } path "${denied}" { capabilities = ["deny"] }`;
      await at.ask('POST sys/policies/acl/tried', { body: { policy } });
      return (await at.ask('POST auth/token/create', { body: { policies: ['tried'] } })).body.auth.client_token;
    };

    const rekey = ['sys/rotate/root', 'sys/rotate/recovery', 'sys/rekey-recovery-key'].map((path) => `${path}/init`);
    for (const [denials, lines] of [
      [
        ['sys/policies/acl', 'sys/policies/acl/', 'sys/policy', 'sys/policy/'],
        ['GET sys/policies/acl?list=true', 'GET sys/policy?list=true', 'GET sys/policy'],
      ],
      [
        ['sys/rotate', 'sys/rotate/keyring'],
        ['POST sys/rotate', 'POST sys/rotate/keyring'],
      ],
      [rekey, rekey.map((path) => `GET ${path}`)],
      [['sys/storage/raft/snapshot'], ['POST sys/storage/raft/snapshot-force']],
      [
        ['auth/ar/role/admin/secret-id'],
        ['POST auth/ar/role/admin/custom-secret-id', 'POST auth/ar/role/ADMIN/custom-secret-id'],
      ],
      // A denial covers every case of a name, in lists too.
      [
        ['auth/ar/role/Admin/secret-id', 'auth/ar/role/Admin/secret-id/', 'auth/ar/role/Admin/*'],
        ['GET auth/ar/role/admin/secret-id?list=true', 'GET auth/ar/role/ADMIN/secret-id?list=true'],
      ],
    ] as const)
      for (const denied of denials)
        it(denied, async () => {
          const token = await tokenWith(denied);
          for (const line of lines) {
            const [path = '', query] = line.slice(line.indexOf(' ') + 1).split('?');
            const asked = { path: query === undefined ? path : `${path}/` };
            const { capabilities } = (await at.ask('POST sys/capabilities-self', { token, body: asked })).body.data;
            const needed = query === undefined ? (line.startsWith('GET') ? 'read' : 'update') : 'list';
            expect(capabilities, asked.path).not.to.include(needed);
            const answer = await at.ask(line as Parameters<Served['ask']>[0], { token });
            expect(answer.status, line).to.equal(403);
          }
        });

    for (const body of [
      { from: 'kept', to: 'elsewhere' },
      { from: '/kept/', to: 'elsewhere' },
      { from: 'elsewhere', to: 'kept/' },
    ])
      it(`sys/mounts/kept, for a move with ${JSON.stringify(body)}`, async () => {
        const token = await tokenWith('sys/mounts/kept');
        expect((await at.ask('POST sys/remount', { token, body })).status).to.equal(403);
        const other = { from: 'other', to: 'elsewhere' };
        expect((await at.ask('POST sys/remount', { token, body: other })).body.errors).to.deep.equal([
          'No secret engine mount at other/',
        ]);
      });

    it('and not for another list', async () => {
      const token = await tokenWith('sys/policies/acl/tried');
      expect((await at.ask('GET sys/policies/acl?list=true', { token })).status).to.equal(200);
    });
  });
});
