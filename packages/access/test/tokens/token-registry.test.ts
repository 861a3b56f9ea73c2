import { expect } from 'chai';
import { allows, ttlOf } from '../../src/index.ts';
import { hour, longest, refusal, setup } from '../fixtures.ts';

describe('a new token', () => {
  it('has the requested settings, and its text is not stored', async () => {
    const { create, records } = await setup();
    const { token, record, ttlS, warnings } = await create({
      policies: ['Zeta', 'default', 'zeta ', ''],
      displayName: 'My app/1',
      meta: { env: 'x' },
      ttlS: hour,
    });
    expect(token).to.match(/^s\.[0-9A-Za-z]{24}$/);
    expect(record).to.deep.include({
      policies: ['default', 'zeta'],
      displayName: 'token-My-app-1',
      meta: { env: 'x' },
      path: 'auth/token/create',
      createdMs: 1_000_000,
      ttlS: hour,
      expiresMs: 1_000_000 + hour * 1000,
      renewable: true,
      generation: 1,
    });
    expect([ttlS, warnings]).to.deep.equal([hour, ['Policy "zeta" does not exist']]);
    const stored = await records('access/');
    expect(stored.map(({ path }) => path).join('\n')).not.to.include(record.accessor);
    expect(JSON.stringify(stored.map(({ path, value }) => [path, Buffer.from(value).toString()]))).not.to.include(token.slice(2));
  });

  it('has the default TTL, and at most the maximum TTL with a warning', async () => {
    const { create } = await setup();
    expect(await create({ policies: ['default'] })).to.deep.include({ ttlS: longest, warnings: [] });
    for (const [request, ttlS] of [
      [{ ttlS: longest + 1 }, longest],
      [{ ttlS: 2 * hour, explicitMaxTtlS: hour }, hour],
      [{ explicitMaxTtlS: longest + 1 }, longest],
      [{ periodS: longest + 1 }, longest],
    ] as const) {
      const granted = await create({ policies: ['default'], ...request });
      expect(granted.ttlS, JSON.stringify(request)).to.equal(ttlS);
      expect(granted.warnings, JSON.stringify(request)).to.have.lengthOf(1);
    }
    expect(await create({ policies: ['default'], explicitMaxTtlS: hour })).to.deep.include({ ttlS: hour, warnings: [] });
  });

  it('of root without policies is root, does not expire and cannot be renewed', async () => {
    const { create } = await setup();
    expect((await create()).record).to.deep.include({ policies: ['root'], expiresMs: 0, ttlS: 0, renewable: false });
    expect((await create({ policies: ['a', 'root', 'b'] })).record.policies).to.deep.equal(['root']);
  });

  it('of others has only policies of its parent, and default only if the parent has it', async () => {
    const { create } = await setup();
    const { token: by } = await create({ policies: ['a', 'b'], noDefaultPolicy: true });
    expect((await create({}, { by })).record.policies).to.deep.equal(['a', 'b']);
    expect((await create({ policies: ['b'] }, { by })).record.policies).to.deep.equal(['b']);
    expect(await refusal(create({ policies: ['c'] }, { by }))).to.match(/subset of parent/);
    expect(await refusal(create({ policies: ['root'] }, { by, privileged: true }))).to.match(/parent token being root/);
    expect((await create({ policies: ['c'] }, { by, privileged: true })).record.policies).to.deep.equal(['c', 'default']);
    expect((await create({ policies: ['c'], noDefaultPolicy: true })).record.policies).to.deep.equal(['c']);
  });

  it('of an expiring root token must expire if it is root', async () => {
    const { create } = await setup();
    const { token: by } = await create({ ttlS: hour });
    expect(await refusal(create({ noParent: true }, { by, privileged: true }))).to.match(/expiring root tokens/);
  });

  it('may be chosen by a privileged caller, once', async () => {
    const { create, good } = await setup();
    expect((await create({ id: 'my-own', policies: ['a'] })).token).to.equal('my-own');
    expect(await good('my-own')).to.equal(true);
    expect(await refusal(create({ id: 'my-own' }))).to.match(/duplicate ID/);
    for (const id of ['s.own', 'b.own', 'hvs.own', 'a b', 'ü', 'x'.repeat(1025)])
      expect(await refusal(create({ id })), id).to.match(/^invalid_request/);
  });

  for (const [what, request] of [
    ['an id', { id: 'mine' }],
    ['a period', { periodS: 60 }],
    ['no parent', { noParent: true }],
  ] as const)
    it(`with ${what} needs root or sudo`, async () => {
      const { create } = await setup();
      const { token: by } = await create({ policies: ['a'] });
      expect(await refusal(create(request, { by }))).to.match(/root or sudo privileges required/);
      expect(await refusal(create(request, { by, privileged: true }))).to.equal('none');
    });

  for (const [request, text] of [
    [{ numUses: -1 }, 'number of uses cannot be negative'],
    [{ type: 'batch' }, 'batch tokens cannot be root tokens'],
    [{ type: 'batch', policies: ['a'], periodS: 60 }, 'batch tokens cannot have "period" set'],
    [{ type: 'batch', policies: ['a'], explicitMaxTtlS: 60 }, 'batch tokens cannot have "explicit_max_ttl" set'],
    [{ type: 'batch', policies: ['a'], numUses: 1 }, 'batch tokens cannot have "num_uses" set'],
    [{ type: 'batch', policies: ['a'], id: 'mine' }, 'batch tokens cannot have "id" set'],
    [{ policies: ['response-wrapping'] }, 'the policy response-wrapping cannot be assigned to a token'],
    [{ type: 'other' }, 'invalid token type'],
    [{ entityAlias: 'x' }, 'entity_alias is not supported'],
    [{ policies: ['a/b'] }, 'a policy name has'],
    [{ policies: Array.from({ length: 257 }, (_, n) => `p${n}`) }, 'at most 256 policies'],
    [{ meta: { a: 'x'.repeat(8200) } }, 'at most 8192 bytes'],
  ] as const)
    it(`is refused with ${JSON.stringify(request).slice(0, 40)}`, async () => {
      expect(await refusal((await setup()).create(request))).to.match(new RegExp(`^invalid_request: .*${text}`));
    });

  it('has at most 100 ancestors', async () => {
    const { create } = await setup();
    let by: string | undefined;
    for (let n = 0; n < 100; n += 1)
      by = (await create({ policies: ['a'] }, by === undefined ? {} : { by, privileged: true })).token;
    expect(await refusal(create({}, { by: by ?? '' }))).to.match(/at most 100 ancestors/);
  });

  it('is not created if its creator is revoked at the same time', async () => {
    const { store, create, registry, good, records } = await setup();
    const { token: by } = await create({ policies: ['a'] });
    const before = (await records('access/token/')).length;
    expect(await good(by)).to.equal(true);
    store.afterGet = async (path) => {
      if (path !== 'access/policy/a') return;
      delete store.afterGet;
      await registry.revoke({ token: by });
    };
    expect(await refusal(create({}, { by }))).to.match(/^bad_token/);
    expect(await records('access/token/')).to.have.lengthOf(before - 1);
  });
});

describe('a renewal', () => {
  it('gives the requested TTL from now on, else the initial one, never beyond the maximum TTL', async () => {
    const { clock, create, registry, good } = await setup();
    const { token } = await create({ policies: ['a'], ttlS: hour });
    clock.now += 1800 * 1000;
    expect(await registry.renew({ token }, 0)).to.deep.include({ ttlS: hour, warnings: [] });
    expect(await registry.renew({ token }, 2 * hour)).to.deep.include({ ttlS: 2 * hour });
    const capped = await registry.renew({ token }, longest);
    expect([capped?.ttlS, capped?.warnings.length]).to.deep.equal([longest - 1800, 1]);
    expect(capped?.record.expiresMs).to.equal(1_000_000 + longest * 1000);
    expect(await registry.renew({ token }, 60)).to.deep.include({ ttlS: 60 });
    clock.now += 60_000;
    expect(await good(token)).to.equal(false);
    expect(await registry.renew({ token }, 60)).to.equal(undefined);
  });

  it('stops at the explicit max TTL', async () => {
    const { clock, create, registry } = await setup();
    const { token } = await create({ policies: ['a'], ttlS: hour, explicitMaxTtlS: 2 * hour });
    clock.now += 1800 * 1000;
    expect(await registry.renew({ token }, 10 * hour)).to.deep.include({ ttlS: 5400 });
  });

  it('of a periodic token gives the period, without end or up to its explicit max TTL', async () => {
    const { clock, create, registry } = await setup();
    const { token } = await create({ policies: ['a'], periodS: hour });
    const { token: capped } = await create({ policies: ['a'], periodS: hour, explicitMaxTtlS: 2 * hour });
    for (let n = 0; n < 3; n += 1) {
      clock.now += 2000 * 1000;
      expect(await registry.renew({ token }, 5 * hour)).to.deep.include({ ttlS: hour, warnings: [] });
      expect((await registry.renew({ token: capped }, 0))?.ttlS).to.equal(Math.min(hour, 2 * hour - (n + 1) * 2000));
    }
    clock.now += 1000 * longest;
    expect(await registry.find({ token })).to.equal(undefined);
  });

  it('is refused for a token that is not renewable, including the root token', async () => {
    const { create, registry, rootToken } = await setup();
    const { token } = await create({ policies: ['a'], renewable: false });
    for (const each of [token, rootToken])
      expect(await refusal(registry.renew({ token: each }, 0))).to.equal('invalid_request: lease is not renewable');
  });

  it('moves the expiry entry, so that the sweep keeps the token', async () => {
    const { clock, create, registry, good, records } = await setup();
    const { token } = await create({ policies: ['a'], ttlS: 60 });
    await registry.renew({ token }, hour);
    expect(await records('access/due/')).to.have.lengthOf(1);
    clock.now += 61_000;
    expect(await registry.sweep(100)).to.deep.equal({ removed: 0, unreadable: 0 });
    expect(await good(token)).to.equal(true);
  });
});

describe('a lookup', () => {
  it('finds a valid token by its text, id and accessor, and no invalid one', async () => {
    const { clock, create, registry, tokens } = await setup();
    const { token, record } = await create({ policies: ['a'], ttlS: 60 });
    const id = (await tokens.authenticate(token))?.id ?? '';
    for (const name of [{ token }, { id }, { accessor: record.accessor }])
      expect((await registry.find(name))?.record.accessor).to.equal(record.accessor);
    expect((await registry.principal({ accessor: record.accessor }))?.record.policies).to.deep.equal(['a', 'default']);
    for (const name of [{ token: record.accessor }, { accessor: token }, { accessor: '' }, { token: '' }, { accessor: 'a\nb' }])
      expect(await registry.find(name), JSON.stringify(name)).to.equal(undefined);
    expect([ttlOf(record, clock.now), ttlOf(record, clock.now + 59_001), ttlOf(record, clock.now + 70_000)]).to.deep.equal([
      60, 1, 0,
    ]);
    clock.now += 60_000;
    expect(await registry.find({ accessor: record.accessor })).to.equal(undefined);
  });

  it('lists the accessors', async () => {
    const { create, registry } = await setup();
    const made = [await create(), await create({ policies: ['a'] })].map(({ record }) => record.accessor);
    expect(await registry.accessors())
      .to.include.members(made)
      .and.have.lengthOf(3);
  });
});

describe('a revocation', () => {
  it('ends the token and its descendants at once, and no other token', async () => {
    const { create, registry, good } = await setup();
    const privileged = true;
    const top = await create({ policies: ['a'] });
    const child = await create({}, { by: top.token });
    const grandchild = await create({}, { by: child.token });
    const orphan = await create({}, { by: top.token, makesOrphans: true });
    const chosen = await create({ noParent: true }, { by: child.token, privileged });
    const other = await create({ policies: ['a'] });
    expect(await registry.revoke({ token: top.token })).to.equal(true);
    for (const { token } of [top, child, grandchild]) expect(await good(token)).to.equal(false);
    for (const { token } of [orphan, chosen, other]) expect(await good(token)).to.equal(true);
    expect(await registry.revoke({ token: top.token })).to.equal(false);
    expect(await registry.find({ accessor: grandchild.record.accessor })).to.equal(undefined);
    expect(await registry.renew({ token: child.token }, 60)).to.equal(undefined);
  });

  it('leaves no records after the sweep, for any number of descendants', async () => {
    const { create, registry, records } = await setup();
    const clean = (await records('access/')).map(({ path }) => path);
    const top = await create({ policies: ['a'] });
    for (let n = 0; n < 12; n += 1) {
      const child = await create({}, { by: top.token });
      await create({}, { by: child.token });
    }
    const keeps = await create({ policies: ['a'] });
    const kept = await create({}, { by: keeps.token });
    await registry.revoke({ accessor: top.record.accessor });
    let removed = 0;
    for (let round = 0; round < 20; round += 1) removed += (await registry.sweep(5)).removed;
    expect(removed).to.equal(24);
    await registry.revoke({ token: kept.token });
    await registry.revoke({ token: keeps.token });
    expect((await records('access/')).map(({ path }) => path)).to.deep.equal(clean);
  });

  it('ends the descendants permanently: a token created again with the same id has no children', async () => {
    const { create, registry, tokens, good, records } = await setup();
    const privileged = true;
    await create({ id: 'top', policies: ['a'] });
    const child = await create({}, { by: 'top' });
    const grandchild = await create({}, { by: child.token });
    expect(await good(grandchild.token)).to.equal(true);
    await registry.revoke({ token: 'top' });
    await create({ id: 'top', policies: ['a'] });
    const kept = await create({}, { by: 'top', privileged });
    for (const inMemory of [true, false]) {
      if (!inMemory) tokens.clear();
      for (const { token } of [child, grandchild]) expect(await good(token)).to.equal(false);
      expect([await good('top'), await good(kept.token)]).to.deep.equal([true, true]);
    }
    await registry.revokeAlone({ token: 'top' });
    for (const { token } of [child, grandchild]) expect(await good(token)).to.equal(false);
    expect(await good(kept.token)).to.equal(true);
    let removed = 0;
    for (let round = 0; round < 3; round += 1) removed += (await registry.sweep(100)).removed;
    expect(removed).to.equal(2);
    expect(await records('access/child/')).to.have.lengthOf(0);
  });

  it('of an ancestor of the creator prevents a concurrent creation, also of an orphan', async () => {
    const { store, create, registry, records } = await setup();
    const { token: top } = await create({ policies: ['a'] });
    const { token: by } = await create({}, { by: top });
    const { commit } = store;
    store.commit = async (transaction) => {
      store.commit = commit;
      await registry.revoke({ token: top });
      return store.commit(transaction);
    };
    expect(await refusal(create({}, { by, makesOrphans: true }))).to.match(/^bad_token/);
    expect(await records('access/token/')).to.have.lengthOf(2);
  });

  it('of the parent alone makes its children orphans, which stay valid', async () => {
    const { create, registry, good, records } = await setup();
    const top = await create({ policies: ['a'] });
    const children = [];
    for (let n = 0; n < 3; n += 1) children.push(await create({}, { by: top.token }));
    const grandchild = await create({}, { by: children[0]?.token ?? '' });
    expect(await registry.revokeAlone({ token: top.token })).to.equal(true);
    expect(await good(top.token)).to.equal(false);
    for (const { token } of [...children, grandchild]) expect(await good(token)).to.equal(true);
    expect((await registry.find({ token: children[1]?.token ?? '' }))?.record.parent).to.equal('');
    await registry.revoke({ token: children[0]?.token ?? '' });
    expect(await good(grandchild.token)).to.equal(false);
    await registry.sweep(100);
    expect(await records('access/child/')).to.have.lengthOf(0);
    expect(await registry.revokeAlone({ token: top.token })).to.equal(false);
  });
});

describe('a token of limited uses', () => {
  it('serves exactly its number of requests, also concurrent ones', async () => {
    const { create, registry, tokens, good } = await setup();
    const { token } = await create({ policies: ['a'], numUses: 3 });
    const principal = await tokens.authenticate(token);
    if (principal === undefined) throw new Error('no such token');
    const spent = await Promise.all(Array.from({ length: 5 }, () => registry.spend(principal)));
    expect(spent.map((each) => each?.record.usesLeft)).to.deep.equal([2, 1, -1, undefined, undefined]);
    expect(await good(token)).to.equal(false);
  });

  it('can be used, renewed and revoked concurrently', async () => {
    const { create, registry, tokens, good } = await setup();
    const { token } = await create({ policies: ['a'], numUses: 100 });
    const principal = await tokens.authenticate(token);
    if (principal === undefined) throw new Error('no such token');
    const spent = Array.from({ length: 30 }, () => registry.spend(principal));
    const renewal = registry.renew({ id: principal.id }, 60);
    const end = registry.revoke({ id: principal.id });
    const late = registry.spend(principal);
    expect((await Promise.all(spent)).map((each) => each?.record.usesLeft)).to.deep.equal(Array.from(spent, (_, n) => 99 - n));
    expect(await renewal).to.deep.include({ ttlS: 60 });
    expect([await end, await late, await good(token)]).to.deep.equal([true, undefined, false]);
  });

  it('is not used after an ancestor is revoked, even between read and write', async () => {
    const { store, create, registry, tokens } = await setup();
    const { token: by } = await create({ policies: ['a'] });
    const { token } = await create({ numUses: 5 }, { by });
    const principal = await tokens.authenticate(token);
    if (principal === undefined) throw new Error('no such token');
    const { commit } = store;
    store.commit = async (transaction) => {
      store.commit = commit;
      await registry.revoke({ token: by });
      return store.commit(transaction);
    };
    expect(await registry.spend(principal)).to.equal(undefined);
  });

  it('continues with the policies as they are after the use', async () => {
    const { store, create, registry, policies, tokens } = await setup();
    await policies.write('a', 'path "x" { capabilities = ["read"] }');
    const { token } = await create({ policies: ['a'], numUses: 1 });
    const principal = await tokens.authenticate(token);
    if (principal === undefined) throw new Error('no such token');
    const { commit } = store;
    store.commit = async (transaction) => {
      store.commit = commit;
      await policies.delete('a');
      return store.commit(transaction);
    };
    const spent = await registry.spend(principal);
    expect([allows(principal, 'read', 'x'), spent && allows(spent, 'read', 'x')]).to.deep.equal([true, false]);
  });

  it('creates no tokens, and is swept when it is used up, even if it does not expire', async () => {
    const { create, registry, tokens, records } = await setup();
    const { token: by } = await create({ numUses: 1 });
    expect(await refusal(create({}, { by, privileged: true }))).to.match(/restricted use token/);
    const principal = await tokens.authenticate(by);
    if (principal === undefined) throw new Error('no such token');
    await registry.spend(principal);
    const where = { privileged: true, makesOrphans: false, path: 'auth/token/create' };
    expect(await refusal(registry.create({}, { principal, ...where }))).to.match(/^invalid_request: restricted use token/);
    expect(await registry.sweep(10)).to.deep.equal({ removed: 1, unreadable: 0 });
    expect(await records('access/token/')).to.have.lengthOf(1);
  });
});

describe('the sweep', () => {
  it('deletes only expired tokens, oldest first', async () => {
    const { clock, create, registry, records } = await setup();
    for (const ttlS of [30, 10, 20, 1000]) await create({ policies: ['a'], ttlS });
    clock.now += 30_000;
    expect(await registry.sweep(2)).to.deep.equal({ removed: 2, unreadable: 0 });
    expect(await registry.sweep(2)).to.deep.equal({ removed: 1, unreadable: 0 });
    expect(await registry.sweep(2)).to.deep.equal({ removed: 0, unreadable: 0 });
    expect(await records('access/token/')).to.have.lengthOf(2);
    expect(await records('access/due/')).to.have.lengthOf(1);
    expect(await records('access/accessor/')).to.have.lengthOf(2);
  });

  it('keeps and counts tokens whose record it cannot read, and continues after them', async () => {
    const { clock, store, create, registry, tokens, records } = await setup();
    const top = await create({ policies: ['a'] });
    const spoil = async (token: string): Promise<void> => {
      const { id } = (await tokens.authenticate(token)) ?? {};
      await store.commit({ conditions: [], writes: [{ path: `access/token/${id}`, value: Buffer.from('{"format":2}') }] });
    };
    for (const ttlS of [1, 2]) await spoil((await create({ policies: ['a'], ttlS })).token);
    await create({ policies: ['a'], ttlS: 3 });
    const child = await create({}, { by: top.token });
    await create({}, { by: top.token });
    await spoil(child.token);
    await registry.revoke({ token: top.token });
    clock.now += 3000;
    let removed = 0;
    for (let round = 0; round < 4; round += 1) removed += (await registry.sweep(2)).removed;
    expect(removed).to.equal(2);
    expect(await records('access/token/')).to.have.lengthOf(4);
    await registry.sweep(10); // to the end of the round
    expect((await registry.sweep(10)).unreadable).to.equal(3);
  });
});
