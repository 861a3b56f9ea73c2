import { expect } from 'chai';
import { ahead, hour, refusal, setup } from '../fixtures.ts';

describe('a token that is expired by a wrong clock', () => {
  for (const [what, by] of [
    ['itself', (token: string, _accessor: string) => ({ token })],
    ['its accessor', (_token: string, accessor: string) => ({ accessor })],
  ] as const) {
    it(`is revoked by ${what}, and stays revoked when the clock is right again`, async () => {
      const { create, registry, good, clock, records } = await setup();
      const { token, record } = await create({ policies: ['a'], ttlS: hour });
      expect(await ahead(clock, () => registry.revoke(by(token, record.accessor)))).to.equal(true);
      expect(await good(token)).to.equal(false);
      expect(await records('access/due/')).to.deep.equal([]);
    });

    it(`is revoked alone by ${what}, and its child becomes an orphan`, async () => {
      const { create, registry, good, clock } = await setup();
      const { token, record } = await create({ policies: ['a'], ttlS: hour });
      const { token: child } = await create({ ttlS: hour }, { by: token });
      expect(await ahead(clock, () => registry.revokeAlone(by(token, record.accessor)))).to.equal(true);
      expect([await good(token), await good(child)]).to.deep.equal([false, true]);
    });
  }

  it('can be revoked below an expired token', async () => {
    const { create, registry, good, clock } = await setup();
    const { token: parent } = await create({ policies: ['a'], ttlS: hour });
    const { token } = await create({}, { by: parent });
    expect(await ahead(clock, () => registry.revoke({ token }))).to.equal(true);
    expect([await good(parent), await good(token)]).to.deep.equal([true, false]);
  });

  it('is not renewed, and is valid again when the clock is right', async () => {
    const { create, registry, good, clock } = await setup();
    const { token } = await create({ policies: ['a'], ttlS: hour });
    expect(await ahead(clock, () => registry.renew({ token }, hour))).to.equal(undefined);
    expect(await good(token)).to.equal(true);
  });

  it('cannot be revoked as a batch token', async () => {
    const { create, registry, clock } = await setup();
    const { token } = await create({ policies: ['a'], ttlS: hour, type: 'batch' });
    const refused = 'invalid_request: batch tokens cannot be revoked';
    expect(await ahead(clock, () => refusal(registry.revoke({ token })))).to.equal(refused);
    expect(await ahead(clock, () => refusal(registry.revokeAlone({ token })))).to.equal(refused);
    expect(await registry.revoke({ token: `${token}x` })).to.equal(false);
  });

  it('is not found after it was revoked', async () => {
    const { create, registry } = await setup();
    const { token, record } = await create({ policies: ['a'] });
    expect(await registry.revoke({ token })).to.equal(true);
    expect(await registry.revoke({ token })).to.equal(false);
    expect(await registry.revoke({ accessor: record.accessor })).to.equal(false);
    expect(await registry.revokeAlone({ token })).to.equal(false);
  });
});
