import { expect } from 'chai';
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
    [{ policies: ['a//b'] }, 'a policy name must have'],
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
