import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import { initialAccess, openAccess } from '../../src/index.ts';
import { withMethod } from '../auth/login-setup.ts';
import { hour, refusal, setup } from '../fixtures.ts';

/** Runs `during` with the clock a day ahead. */
async function ahead<T>(clock: { now: number }, during: () => Promise<T>): Promise<T> {
  const right = clock.now;
  clock.now += 24 * hour * 1000;
  try {
    return await during();
  } finally {
    clock.now = right;
  }
}

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

describe('a token or secret id that is expired by one of two clocks', () => {
  it('is refused, and deleted only when it is expired by both', async () => {
    const store = memoryStore();
    const [clock, due] = [{ now: 1_000_000 }, { now: 1_000_000 }];
    const { rootToken, writes } = initialAccess({ now: clock.now });
    await store.commit({ conditions: [], writes });
    const { tokens, registry, logins } = openAccess({
      store,
      clock: clockOf(
        () => clock.now,
        () => due.now,
      ),
    });
    const principal = await tokens.authenticate(rootToken);
    if (principal === undefined) throw new Error('no such token');
    const where = { principal, privileged: true, makesOrphans: false, path: 'auth/token/create' };
    const { token } = await registry.create({ policies: ['a'], ttlS: 60 }, where);
    await logins.mounts.enable('m', 'approle', {});
    const mount = await logins.mounts.find('m');
    if (mount === undefined) throw new Error('no such method');
    await logins.approle.write(mount, 'web', { token: {} });
    const { secretId } = await logins.approle.createSecretId(mount, 'web', { ttlS: 60 });
    clock.now += 24 * hour * 1000;
    expect(await tokens.authenticate(token)).to.equal(undefined);
    expect([(await registry.sweep(10)).removed, await logins.sweep(10)]).to.deep.equal([0, 0]);
    clock.now -= 24 * hour * 1000;
    expect(await tokens.authenticate(token)).not.to.equal(undefined);
    expect(await logins.approle.findSecretId(mount, 'web', { secretId })).not.to.equal(undefined);
    due.now += 24 * hour * 1000;
    expect([(await registry.sweep(10)).removed, await logins.sweep(10)]).to.deep.equal([1, 1]);
  });
});

describe('a secret id that is expired by a wrong clock', () => {
  for (const by of ['secretId', 'accessor'] as const)
    it(`is destroyed by its ${by === 'accessor' ? by : 'text'}, and stays destroyed when the clock is right again`, async () => {
      const { logins, mount, login, clock } = await withMethod('approle');
      const { approle } = logins;
      await approle.write(await mount(), 'web', { token: { policies: ['a'] } });
      const roleId = (await approle.roles.find((await mount()).id, 'web'))?.value.roleId ?? '';
      const { secretId, secret } = await approle.createSecretId(await mount(), 'web', { ttlS: 60 });
      const named = by === 'secretId' ? { secretId } : { accessor: secret.accessor };
      await ahead(clock, async () => approle.destroySecretId(await mount(), 'web', named));
      expect(await refusal(approle.login(await login(), roleId, secretId))).to.equal(
        'invalid_request: invalid role or secret ID',
      );
    });
});
