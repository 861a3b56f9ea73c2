import { expect } from 'chai';
import type { TokenRequest } from '../../src/index.ts';
import type { TokenRoleChange } from '../../src/tokens/token-role.ts';
import { hour, refusal, setup } from '../fixtures.ts';

async function withRole(change: TokenRoleChange) {
  const all = await setup();
  await all.registry.roles.write('r', change);
  return {
    ...all,
    make: (request: TokenRequest, by?: string) => all.create(request, { role: 'r', ...(by !== undefined && { by }) }),
  };
}

describe('a token role', () => {
  it('is written in parts, listed and deleted', async () => {
    const { registry } = await setup();
    await registry.roles.write('r', { allowedPolicies: ['B', 'a', 'b '], orphan: true });
    await registry.roles.write('r', { periodS: 60 });
    expect((await registry.roles.find('r'))?.role).to.deep.include({
      allowedPolicies: ['a', 'b'],
      orphan: true,
      renewable: true,
      periodS: 60,
      type: 'default-service',
    });
    expect(await registry.roles.list()).to.deep.equal(['r']);
    await registry.roles.delete('r');
    expect(await registry.roles.find('r')).to.equal(undefined);
    expect(await registry.roles.list()).to.deep.equal([]);
  });

  for (const [change, text] of [
    [{ pathSuffix: 'ab' }, 'path_suffix must have'],
    [{ pathSuffix: '../x' }, 'path_suffix must have'],
    [{ numUses: -1 }, 'cannot be negative'],
    [{ type: 'batch', periodS: 60 }, "'token_type' cannot be 'batch'"],
    [{ boundCidrs: ['10.0.0.0/33'] }, 'token_bound_cidrs must hold address blocks'],
    [{ allowedPolicies: ['a//b'] }, 'a policy name must have'],
    [{ allowedPolicies: Array.from({ length: 9000 }, (_, n) => `policy-${n}`) }, 'at most 65536 bytes'],
  ] as const)
    it(`is refused with ${JSON.stringify(change).slice(0, 40)}`, async () => {
      expect(await refusal(withRole(change))).to.match(new RegExp(`^invalid_request: .*${text}`));
    });

  it('is refused under an invalid name', async () => {
    const { registry } = await setup();
    for (const name of ['', 'a b', 'a/b', '-a', 'x'.repeat(129)])
      expect(await refusal(registry.roles.write(name, {})), name).to.match(/a role name must have/);
    expect(await registry.roles.find('a/b')).to.equal(undefined);
  });

  it('gives its tokens its settings', async () => {
    const { make } = await withRole({
      allowedPolicies: ['a', 'b'],
      orphan: true,
      periodS: hour,
      pathSuffix: 'build',
      numUses: 3,
      boundCidrs: ['10.0.0.0/8'],
    });
    const { record } = await make({ policies: ['a'] });
    expect(record).to.deep.include({
      policies: ['a', 'default'],
      parent: '',
      periodS: hour,
      ttlS: hour,
      path: 'auth/token/create/r/build',
      role: 'r',
      usesLeft: 3,
      boundCidrs: ['10.0.0.0/8'],
      renewable: true,
    });
  });

  it('and the request limit the period, the explicit maximum and the number of uses; the smaller value applies', async () => {
    const { make, registry } = await withRole({ allowedPolicies: ['a'], periodS: 60, explicitMaxTtlS: 600, numUses: 5 });
    const requested = { periodS: 90, explicitMaxTtlS: 700, numUses: 2 };
    expect((await make(requested)).record).to.deep.include({ periodS: 60, explicitMaxTtlS: 600, usesLeft: 2 });
    expect((await make({ periodS: 30 })).record).to.deep.include({ periodS: 30, ttlS: 30 });
    await registry.roles.write('r', { renewable: false });
    expect((await make({})).record.renewable).to.equal(false);
  });

  for (const { role, requested, expected } of [
    { role: { allowedPolicies: ['a', 'b'] }, requested: undefined, expected: ['a', 'b', 'default'] },
    { role: { allowedPolicies: ['a'] }, requested: ['a', 'default'], expected: ['a', 'default'] },
    { role: { allowedPolicies: ['a'], noDefaultPolicy: true }, requested: ['a'], expected: ['a'] },
    { role: { allowedPolicies: ['a'], noDefaultPolicy: true }, requested: ['default'], expected: /must be subset of the role/ },
    { role: { allowedPolicies: ['a'] }, requested: ['b'], expected: /must be subset of the role/ },
    { role: { allowedPoliciesGlob: ['dev-*'] }, requested: ['dev-x'], expected: ['default', 'dev-x'] },
    { role: { allowedPoliciesGlob: ['dev-*'] }, requested: ['prod-x'], expected: /must be subset of the role/ },
    { role: { disallowedPolicies: ['a'] }, requested: ['a'], expected: /"a" is disallowed by this role/ },
    { role: { disallowedPolicies: ['a'] }, requested: ['A'], expected: /"a" is disallowed by this role/ },
    { role: { disallowedPolicies: ['default'] }, requested: ['b'], expected: ['b'] },
    { role: { disallowedPoliciesGlob: ['*admin*'] }, requested: ['my-admin-x'], expected: /is disallowed by this role/ },
    {
      role: { allowedPoliciesGlob: ['*'], disallowedPolicies: ['b'] },
      requested: ['b'],
      expected: /is disallowed by this role/,
    },
    {
      role: { disallowedPoliciesGlob: ['*'] },
      requested: ['path "a" { } # a policy text in place of a name'],
      expected: /^invalid_request: token policy named there is disallowed by this role$/,
    },
    { role: {}, requested: ['held'], expected: ['default', 'held'] },
    { role: {}, requested: ['other'], expected: /child policies must be subset of parent/ },
    { role: { allowedPolicies: ['root'] }, requested: undefined, expected: /without parent token being root/ },
    { role: { allowedPoliciesGlob: ['*'] }, requested: ['root'], expected: /without parent token being root/ },
  ] as const)
    it(`${JSON.stringify(role)}: a holder of "held" who requests ${requested ?? 'nothing'} gets ${expected}`, async () => {
      const { make, create } = await withRole(role);
      const { token: by } = await create({ policies: ['held'] });
      const made = make(requested === undefined ? {} : { policies: requested }, by);
      if (expected instanceof RegExp) expect(await refusal(made)).to.match(expected);
      else expect((await made).record.policies).to.deep.equal(expected);
    });

  for (const { type, requested, expected } of [
    { type: 'default-service', requested: undefined, expected: 'service' },
    { type: 'default-service', requested: 'batch', expected: 'batch' },
    { type: 'default-batch', requested: undefined, expected: 'batch' },
    { type: 'default-batch', requested: 'service', expected: 'service' },
    { type: 'batch', requested: undefined, expected: 'batch' },
    { type: 'batch', requested: 'service', expected: /only creates batch/ },
    { type: 'service', requested: 'batch', expected: /only creates service/ },
  ] as const)
    it(`of type ${type} with ${requested ?? 'nothing'} requested: ${expected}`, async () => {
      const { make } = await withRole({ allowedPolicies: ['a'], type });
      const made = make({ type: requested });
      if (expected instanceof RegExp) expect(await refusal(made)).to.match(expected);
      else expect((await made).record.type).to.equal(expected);
    });

  it('that does not exist, or is deleted at the same time, creates no token', async () => {
    const { make, create, registry, store } = await withRole({ allowedPolicies: ['a'] });
    expect(await refusal(create({}, { role: 'other' }))).to.equal('invalid_request: unknown role');
    store.afterGet = async (path) => {
      if (path !== 'access/role/r') return;
      delete store.afterGet;
      await registry.roles.delete('r');
    };
    expect(await refusal(make({}))).to.equal('invalid_request: unknown role');
  });
});
