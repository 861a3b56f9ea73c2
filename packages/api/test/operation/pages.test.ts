import { expect } from 'chai';
import type { GuardedOperation } from '../../src/operation/operation.ts';
import { pageOf } from '../../src/operation/pages.ts';
import { allRoutes } from '../../src/routes.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

describe('a page of a list', () => {
  const all = ['a', 'b', 'c', 'd'];
  for (const [asked, page] of [
    [{}, all],
    [{ after: '', limit: 0 }, all],
    [{ limit: -1 }, all],
    [{ limit: 2 }, ['a', 'b']],
    [{ limit: 9 }, all],
    [{ after: 'b' }, ['c', 'd']],
    [{ after: 'b', limit: 1 }, ['c']],
    [{ after: 'bb', limit: 1 }, ['c']],
    [{ after: '0', limit: 1 }, ['a']],
    [{ after: 'd' }, []],
    [{ after: 'x', limit: 1 }, []],
  ] as const)
    it(`is ${page.join()} for ${JSON.stringify(asked)}`, () => {
      expect(pageOf(all, { after: undefined, limit: undefined, ...asked })).to.deep.equal(page);
    });
});

/** The lists of a server, and the request that makes a name in each; none for names that the server has from the start. */
const lists: Readonly<Record<string, ((name: string) => readonly [line: string, body: object]) | undefined>> = {
  'transit/keys': (name) => [`POST transit/keys/${name}`, {}],
  'sys/policies/acl': (name) => [`POST sys/policies/acl/${name}`, { policy: 'path "a" {}' }],
  'sys/policy': (name) => [`POST sys/policy/${name}`, { policy: 'path "a" {}' }],
  'sys/quotas/rate-limit': (name) => [`POST sys/quotas/rate-limit/${name}`, { path: `transit/keys/${name}`, rate: 1e6 }],
  'sys/managed-keys/pkcs11': undefined,
  'auth/token/roles': (name) => [`POST auth/token/roles/${name}`, {}],
  'auth/token/accessors': () => ['POST auth/token/create', {}],
  'auth/people/users': (name) => [`POST auth/people/users/${name}`, { password: 'secret' }],
  'auth/machines/role': (name) => [`POST auth/machines/role/${name}`, {}],
  'auth/machines/role/n1/secret-id': () => ['POST auth/machines/role/n1/secret-id', {}],
};
const names = ['n1', 'n2', 'n3'];

describe('each list', () => {
  let at: Served;
  before(async () => {
    at = await served();
    await at.ask('POST sys/auth/people', { body: { type: 'userpass' } });
    await at.ask('POST sys/auth/machines', { body: { type: 'approle' } });
    // Its list reads no values, and no PKCS#11 library is configured.
    const writes = names.map((name) => ({ path: `managed-keys/pkcs11/${name}`, value: Buffer.alloc(1) }));
    await at.store.commit({ conditions: [], writes });
  });
  after(() => at.close());

  it('declares after and limit, whatever the type of the method', () => {
    let checked = 0;
    for (const { path, operations } of allRoutes(new TestMetrics())) {
      const list = operations.LIST as GuardedOperation | undefined;
      if (list === undefined) continue;
      for (const { takes = {} } of list.byType === undefined ? [list] : Object.values(list.byType)) {
        checked += 1;
        expect(Object.keys(takes), path).to.include.members(['after', 'limit']);
      }
    }
    expect(checked).to.be.at.least(Object.keys(lists).length);
  });

  for (const [path, make] of Object.entries(lists))
    it(`is read in pages: ${path}`, async () => {
      for (const [line, body] of names.flatMap((name) => (make === undefined ? [] : [make(name)]))) {
        const made = await at.ask(line, { body });
        expect(made.status, made.text).to.be.below(300);
      }
      const list = async (query: string) => at.ask(`GET ${path}?list=true${query}`);
      const keys = async (query: string): Promise<readonly string[]> => (await list(query)).body.data.keys;
      const all = await keys('');
      expect(all.length).to.be.at.least(3);
      expect([...all].sort()).to.deep.equal(all);
      const read: string[] = [];
      for (let after = ''; read.length < all.length; after = read.at(-1) ?? '')
        read.push(...(await keys(`&limit=2&after=${after}`)));
      expect(read).to.deep.equal(all);
      for (const [query, page] of [
        ['&limit=0', all],
        ['&limit=-1', all],
        ['&limit=', all],
        ['&after=', all],
        ['&limit=1', all.slice(0, 1)],
        [`&after=${all[0]}`, all.slice(1)],
        [`&after=${all[0]}!`, all.slice(1)],
        [`&after=${all[0]}&limit=1`, all.slice(1, 2)],
        [`&limit=${all.length + 5}`, all],
      ] as const)
        expect(await keys(query), query).to.deep.equal(page);
      for (const query of [`&after=${all.at(-1)}`, '&after=~', '&after=~&limit=1']) {
        const past = await list(query);
        const isEmpty = path === 'sys/policy'; // an older form, which is never a missing record
        expect([past.status, past.body.errors], query).to.deep.equal(isEmpty ? [200, undefined] : [404, []]);
      }
      for (const limit of ['x', '1.5', '1e3', '2x']) {
        const refused = await list(`&limit=${limit}`);
        const text = 'Field validation failed: error converting input for field "limit": expected an integer';
        expect([refused.status, refused.body.errors], limit).to.deep.equal([400, [text]]);
      }
    });

  it('is limited by a policy to pages of its size', async () => {
    const policy = 'path "*" { capabilities = ["list", "sudo"] pagination_limit = 2 }';
    await at.ask('POST sys/policies/acl/paged', { body: { policy } });
    const { auth } = (await at.ask('POST auth/token/create', { body: { policies: ['paged'] } })).body;
    for (const path of Object.keys(lists)) {
      const list = (query: string) => at.ask(`GET ${path}?list=true${query}`, { token: auth.client_token });
      expect((await list('')).body.data.keys, path).to.have.length(2);
      expect((await list('&limit=max')).body.data.keys, path).to.have.length(2);
      expect((await list('&limit=1')).body.data.keys, path).to.have.length(1);
      for (const limit of [0, -1, 3]) expect((await list(`&limit=${limit}`)).status, path).to.equal(403);
    }
  });
});
