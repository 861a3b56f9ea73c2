import { expect } from 'chai';
import { hour, refusal, setup } from '../fixtures.ts';

describe('a renewal of a token of a token role', () => {
  it('is refused after the role is deleted', async () => {
    const { create, registry } = await setup();
    await registry.roles.write('r', { allowedPolicies: ['a'], periodS: hour });
    const { token, record } = await create({}, { role: 'r' });
    expect(await refusal(registry.renew({ token }, 0))).to.equal('none');
    await registry.roles.delete('r');
    for (const name of [{ token }, { accessor: record.accessor }])
      expect(await refusal(registry.renew(name, 0))).to.equal(
        'invalid_request: lease is not renewable: its token role no longer exists',
      );
  });

  it('uses the present period of the role, within the smallest explicit maximum', async () => {
    const { create, registry, clock } = await setup();
    await registry.roles.write('r', { allowedPolicies: ['a'], periodS: hour });
    const { token } = await create({}, { role: 'r' });
    await registry.roles.write('r', { periodS: 60, explicitMaxTtlS: 100 });
    expect((await registry.renew({ token }, 0))?.ttlS).to.equal(60);
    clock.now += 50_000;
    expect((await registry.renew({ token }, 0))?.ttlS).to.equal(50);
  });
});

describe('a token of a role with a number of uses', () => {
  for (const type of ['default-service', 'default-batch'] as const)
    it(`is not a batch token of a role of type ${type}, since its uses cannot be counted`, async () => {
      const { create, registry } = await setup();
      const written = await refusal(registry.roles.write('r', { allowedPolicies: ['a'], numUses: 2, type }));
      if (type === 'default-batch')
        expect(written).to.equal("invalid_request: 'token_type' cannot be 'default-batch' for a role with a number of uses");
      else
        expect(await refusal(create({ type: 'batch' }, { role: 'r' }))).to.equal(
          'invalid_request: batch tokens cannot have "num_uses" set',
        );
    });

  it('has no uses as a batch token', async () => {
    const { create, registry, tokens, who } = await setup();
    const { record } = await create({ policies: ['a'], type: 'batch' });
    const principal = await who(await tokens.sealBatch({ ...record, usesLeft: 2 }));
    expect(await registry.spend(principal)).to.equal(undefined);
  });
});

describe('an orphan role', () => {
  it('creates orphans for every caller, also when the request asks for no parent', async () => {
    const { create, registry } = await setup();
    await registry.roles.write('r', { orphan: true });
    const { token: by } = await create({ policies: ['a'] });
    for (const noParent of [true, false, undefined])
      expect((await create({ noParent }, { by, role: 'r' })).record.parent).to.equal('');
    await registry.roles.write('r', { orphan: false });
    expect(await refusal(create({ noParent: true }, { by, role: 'r' }))).to.match(/privileges required to create orphan token/);
  });
});
