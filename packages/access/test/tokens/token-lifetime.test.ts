import { expect } from 'chai';
import { hour, longest, refusal, setup } from '../fixtures.ts';

describe('a renewal', () => {
  it('gives the requested TTL from now on, else the initial TTL, never beyond the maximum TTL', async () => {
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

describe('the configured TTLs', () => {
  it('are the default and the maximum TTL of a new token', async () => {
    const { create } = await setup({ defaultTtlS: 60, maxTtlS: 600 });
    expect((await create({ policies: ['a'] })).ttlS).to.equal(60);
    expect((await create({ policies: ['a'], ttlS: longest })).ttlS).to.equal(600);
  });

  it('bound renewals too', async () => {
    const { create, registry, clock } = await setup({ defaultTtlS: 60, maxTtlS: 600 });
    const { token } = await create({ policies: ['a'], ttlS: 500 });
    clock.now += 400_000;
    expect((await registry.renew({ token }, 500))?.ttlS).to.equal(200);
  });
});
