import { expect } from 'chai';
import type { TokenRequest } from '../../src/index.ts';
import type { TokenRoleChange } from '../../src/tokens/token-role.ts';
import { hour, refusal, setup } from '../fixtures.ts';

/** Non-empty lists without a policy name. */
const blankLists: readonly (readonly string[])[] = [[''], [' '], ['', ''], ['\t', ' ']];

describe('a list of blank policy names', () => {
  for (const policies of blankLists)
    for (const [what, request, role] of [
      ['a token', {}, undefined],
      ['a token without default', { noDefaultPolicy: true }, undefined],
      ['a batch token', { type: 'batch' }, undefined],
      ['an orphan', { noParent: true }, undefined],
      ['a token of a role', {}, {}],
      ['a token of a role that denies a policy', {}, { disallowedPolicies: ['x'] }],
      ['a token of a role that allows policies', {}, { allowedPolicies: ['a'] }],
    ] as const satisfies readonly (readonly [string, TokenRequest, TokenRoleChange | undefined])[])
      it(`${JSON.stringify(policies)} gives ${what} created by root no policy of root`, async () => {
        const { create, registry } = await setup();
        if (role !== undefined) await registry.roles.write('r', role);
        const made = await create({ ...request, policies, ttlS: hour }, role === undefined ? {} : { role: 'r' });
        expect(made.record.policies).to.deep.equal('noDefaultPolicy' in request ? [] : ['default']);
      });

  for (const change of [
    { allowedPolicies: [''] },
    { allowedPolicies: [' ', ''] },
    { allowedPoliciesGlob: [''] },
    { allowedPolicies: [''], allowedPoliciesGlob: [' '] },
  ] as const)
    it(`of a role, ${JSON.stringify(change)}, allows only default`, async () => {
      const { create, registry } = await setup();
      await registry.roles.write('r', change);
      expect((await create({}, { role: 'r' })).record.policies).to.deep.equal(['default']);
      expect(await refusal(create({ policies: ['a'] }, { role: 'r' }))).to.match(/must be subset of the role/);
      expect(await refusal(create({ policies: ['root'] }, { role: 'r' }))).to.match(/must be subset of the role/);
    });

  it('as disallowed policies still limits a child to the policies of its parent', async () => {
    const { create, registry } = await setup();
    await registry.roles.write('r', { disallowedPolicies: [''], disallowedPoliciesGlob: [' '] });
    const { token: by } = await create({ policies: ['a'] });
    expect(await refusal(create({ policies: ['b'] }, { by, role: 'r' }))).to.match(/subset of parent/);
  });
});

describe('a request without policies', () => {
  it('inherits all of them, default only without no_default_policy', async () => {
    const { create } = await setup();
    const { token: by } = await create({ policies: ['a'] });
    const inherited = async (noDefaultPolicy: boolean) =>
      (await create({ policies: [], noDefaultPolicy }, { by })).record.policies;
    expect([await inherited(false), await inherited(true)]).to.deep.equal([['a', 'default'], ['a']]);
  });

  it('inherits root even with no_default_policy', async () => {
    const { create } = await setup();
    expect((await create({ policies: [], noDefaultPolicy: true })).record.policies).to.deep.equal(['root']);
  });
});

describe('no_default_policy', () => {
  it('of a request removes a default that it names', async () => {
    const { create } = await setup();
    expect((await create({ policies: ['default'], noDefaultPolicy: true })).record.policies).to.deep.equal([]);
    expect((await create({ policies: ['b', 'default', 'a'], noDefaultPolicy: true })).record.policies).to.deep.equal(['a', 'b']);
  });

  it('of a role keeps a default that the request names', async () => {
    const { create, registry } = await setup();
    await registry.roles.write('r', { noDefaultPolicy: true });
    const made = async (policies: string[]) => (await create({ policies }, { role: 'r' })).record.policies;
    expect([await made(['a']), await made(['a', 'default'])]).to.deep.equal([['a'], ['a', 'default']]);
  });
});
