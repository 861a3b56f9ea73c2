import { expect } from 'chai';
import { allows, ttlOf } from '../../src/index.ts';
import { refusal, setup } from '../fixtures.ts';

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
