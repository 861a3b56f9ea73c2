import { type ClockDisputes, initialAccess, openAccess, type TimeSource } from '@transitd/access';
import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { ahead, hour, refusal } from '../../../access/test/fixtures.ts';
import { clockOf } from '../../../process/test/test-clock.ts';
import type { AppRoles } from '../../src/auth/approle/logins.ts';
import type { AppRoleChange } from '../../src/auth/approle/role.ts';
import { lightMethods } from '../light-methods.ts';
import { withMethod } from './login-setup.ts';

const invalid = 'invalid_request: invalid role or secret ID';

async function withRole(change: Partial<AppRoleChange> = {}, clockDisputes?: ClockDisputes) {
  const all = await withMethod('approle', undefined, clockDisputes);
  const { approle } = all;
  await approle.write(await all.mount(), 'Web', { token: { policies: ['a'], ttlS: 1200 }, ...change });
  const roleId = (await approle.roles.find((await all.mount()).id, 'web'))?.value.roleId ?? '';
  const secret = async (request = {}) => approle.createSecretId(await all.mount(), 'web', request);
  const enter = async (secretId: string, { role = roleId, address }: { role?: string; address?: string } = {}) =>
    approle.login(await all.login('auth/m/login', address), role, secretId);
  return { ...all, approle, roleId, secret, enter };
}

describe('an AppRole login', () => {
  it('creates a token with the settings of the role', async () => {
    const { secret, enter, who } = await withRole();
    const { secretId } = await secret({ meta: { team: 'x', role_name: 'forged' } });
    const { token, record, ttlS } = await enter(secretId);
    expect(record).to.deep.include({ policies: ['a', 'default'], meta: { team: 'x', role_name: 'web' }, displayName: 'm' });
    expect(ttlS).to.equal(1200);
    expect(await who(token)).to.include({ root: false });
  });

  it('gets the same refusal for every wrong credential', async () => {
    const { approle, mount, secret, enter, roleId } = await withRole();
    const { secretId } = await secret();
    await approle.write(await mount(), 'other', { token: {} });
    const other = (await approle.roles.find((await mount()).id, 'other'))?.value.roleId ?? '';
    for (const [role, id] of [
      [other, secretId],
      ['00000000-0000-0000-0000-000000000000', secretId],
      [roleId, secretId.toUpperCase()],
      [roleId, `${secretId} `],
      [roleId, 'x'.repeat(5000)],
    ] as const)
      expect(await refusal(enter(id, { role })), `${role} ${id.slice(0, 40)}`).to.equal(invalid);
  });

  it('is told which of the two credentials is missing, but not whether the role exists', async () => {
    const { enter, roleId, secret } = await withRole();
    const { secretId } = await secret();
    expect(await refusal(enter(secretId, { role: '' }))).to.equal('invalid_request: missing role_id');
    for (const role of [roleId, '00000000-0000-0000-0000-000000000000'])
      expect(await refusal(enter('', { role }))).to.equal('invalid_request: missing secret_id');
  });

  it('stores neither secret ids nor accessors in paths, and no secret id in values', async () => {
    const { secret, records } = await withRole();
    const made = await secret();
    const stored = await records('access/login/');
    const paths = stored.map(({ path }) => path).join('\n');
    const values = stored.map(({ value }) => Buffer.from(value).toString()).join('\n');
    expect(`${paths}${values}`).not.to.include(made.secretId);
    expect(paths).not.to.include(made.secret.accessor);
  });

  it('counts concurrent uses of a secret id and deletes it after the last one', async () => {
    const { secret, enter, records } = await withRole({ secretIdNumUses: 3 });
    const { secretId } = await secret();
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => refusal(enter(secretId))));
    expect(outcomes.filter((outcome) => outcome === 'none')).to.have.lengthOf(3);
    expect(outcomes.filter((outcome) => outcome === invalid)).to.have.lengthOf(7);
    expect((await records('access/login/')).filter(({ path }) => path.includes('/secret'))).to.deep.equal([]);
  });

  it('fails after the secret id has expired, and the sweep deletes it', async () => {
    const { secret, enter, clock, records, swept } = await withRole({ secretIdTtlS: 60 });
    const { secretId } = await secret();
    clock.now += 59_999;
    expect(await refusal(enter(secretId))).to.equal('none');
    clock.now += 1;
    expect(await refusal(enter(secretId))).to.equal(invalid);
    const refused: unknown = await enter(secretId).catch((error: unknown) => error);
    expect(refused).to.have.deep.property('refusedBy', { constraint: 'secret_id_ttl' });
    await swept();
    expect((await records('access/login/')).filter(({ path }) => path.includes('/secret'))).to.deep.equal([]);
  });

  it('fails after the TTL of a secret id that was made while a clock was ahead, once that clock is set right', async () => {
    const dayMs = 24 * 3_600_000;
    let decided = (_: TimeSource, _aheadMs: number): void => undefined;
    let isAhead = true;
    const { secret, enter, clock, disputedDates } = await withRole(
      { secretIdTtlS: 60 },
      {
        current: () => (isAhead ? { differenceMs: dayMs, earlier: 'steady' } : undefined),
        onDecided: (listener) => {
          decided = listener;
          return () => undefined;
        },
      },
    );
    const rightMs = clock.now;
    clock.now += dayMs;
    const { secretId } = await secret();
    expect(await refusal(enter(secretId))).to.equal('none');
    isAhead = false;
    clock.now = rightMs + 59_999;
    decided('steady', 0);
    // The secret id and the token of the login.
    expect(await disputedDates.correct(10)).to.equal(2);
    expect(await refusal(enter(secretId))).to.equal('none');
    clock.now += 1;
    expect(await refusal(enter(secretId))).to.equal(invalid);
  });

  it('fails after the role is deleted, also when the role is created again', async () => {
    const { approle, secret, enter, mount, roleId, records, swept } = await withRole();
    const { secretId } = await secret();
    await approle.delete(await mount(), 'WEB');
    expect(await refusal(enter(secretId))).to.equal(invalid);
    await approle.write(await mount(), 'web', { roleId, token: {} });
    expect(await refusal(enter(secretId))).to.equal(invalid);
    expect(await approle.secretIdAccessors(await mount(), 'web')).to.deep.equal([]);
    await swept();
    expect((await records('access/login/')).filter(({ path }) => path.includes('/secret'))).to.deep.equal([]);
  });

  it('requires an address in every bound list and binds the token to their intersection', async () => {
    const { secret, enter } = await withRole({ secretIdBoundCidrs: ['10.0.0.0/8'], token: { boundCidrs: ['10.0.0.0/8'] } });
    const { secretId } = await secret({ cidrs: ['10.1.0.0/16'], tokenBoundCidrs: ['10.1.1.0/24', '192.0.2.0/24'] });
    for (const address of ['192.0.2.1', '10.2.0.1', '10.1.2.1'])
      expect(await refusal(enter(secretId, { address })), address).to.equal(invalid);
    expect((await enter(secretId, { address: '10.1.1.1' })).record.boundCidrs).to.deep.equal(['10.1.1.0/24']);
  });

  it('needs no secret id if the role requires none, but then bound CIDRs', async () => {
    const { approle, enter, mount } = await withRole();
    expect(await refusal(approle.write(await mount(), 'web', { bindSecretId: false, token: {} }))).to.match(
      /at least one constraint/,
    );
    await approle.write(await mount(), 'web', { bindSecretId: false, secretIdBoundCidrs: ['10.0.0.0/8'], token: {} });
    // As for an unknown role, so that nobody can find out role ids from other addresses.
    expect(await refusal(enter(''))).to.equal('invalid_request: missing secret_id');
    expect(await refusal(enter('', { address: '10.0.0.1' }))).to.equal('none');
  });

  it('creates no token if the secret id is deleted at the same time', async () => {
    const { approle, secret, enter, mount, store, records } = await withRole();
    const { secretId } = await secret();
    const before = (await records('access/token/')).length;
    let reads = 0;
    store.afterGet = async (path) => {
      if (!path.includes('/secret/')) return;
      reads += 1;
      if (reads > 1) return;
      await approle.destroySecretId(await mount(), 'web', { secretId });
    };
    expect(await refusal(enter(secretId))).to.equal(invalid);
    expect(await records('access/token/')).to.have.lengthOf(before);
  });

  it('creates no token if the role is deleted at the same time', async () => {
    const { approle, secret, enter, mount, store, records } = await withRole();
    const { secretId } = await secret();
    const before = (await records('access/token/')).length;
    store.afterGet = async (path) => {
      if (!path.includes('/secret/')) return;
      delete store.afterGet;
      await approle.delete(await mount(), 'web');
    };
    expect(await refusal(enter(secretId))).to.equal(invalid);
    expect(await records('access/token/')).to.have.lengthOf(before);
  });
});

describe('a secret id', () => {
  it('is looked up and destroyed by its text and by its accessor', async () => {
    const { approle, secret, mount } = await withRole();
    const [one, other] = [await secret(), await secret()];
    expect(await approle.secretIdAccessors(await mount(), 'web')).to.deep.equal(
      [one.secret.accessor, other.secret.accessor].sort(),
    );
    expect(await approle.findSecretId(await mount(), 'web', { secretId: one.secretId })).to.deep.equal(one.secret);
    expect(await approle.findSecretId(await mount(), 'web', { accessor: other.secret.accessor })).to.deep.equal(other.secret);
    await approle.destroySecretId(await mount(), 'web', { secretId: one.secretId });
    await approle.destroySecretId(await mount(), 'web', { accessor: other.secret.accessor });
    expect(await approle.secretIdAccessors(await mount(), 'web')).to.deep.equal([]);
    expect(await approle.findSecretId(await mount(), 'web', { accessor: other.secret.accessor })).to.equal(undefined);
  });

  it('may be chosen by the caller, once', async () => {
    const { secret, enter } = await withRole();
    await secret({ secretId: 'my own' });
    expect(await refusal(secret({ secretId: 'my own' }))).to.match(/already in use/);
    expect(await refusal(enter('my own'))).to.equal('none');
  });

  for (const [role, request, text] of [
    [{ secretIdNumUses: 2 }, { numUses: 3 }, "'num_uses' cannot exceed"],
    [{ secretIdNumUses: 2 }, { numUses: 0 }, "'num_uses' cannot exceed"],
    [{ secretIdTtlS: 2 }, { ttlS: 3 }, "'ttl' cannot exceed"],
    [{}, { numUses: -1 }, "'num_uses' cannot be negative"],
    [{}, { cidrs: ['x'] }, 'cidr_list must hold address blocks'],
    [{}, { meta: { a: 'x'.repeat(4100) } }, 'metadata must have at most'],
    [{}, { secretId: 'x'.repeat(4097) }, 'a secret id must have'],
  ] as const)
    it(`is refused with ${JSON.stringify(request).slice(0, 40)} of ${JSON.stringify(role)}`, async () => {
      const { secret } = await withRole(role);
      expect(await refusal(secret(request))).to.match(new RegExp(`^invalid_request: .*${text}`));
    });
});

describe('a role id', () => {
  it('belongs to one role, also when two roles request it at the same time', async () => {
    const { approle, mount, store } = await withRole();
    store.afterGet = async (path) => {
      if (!path.includes('/role-id/')) return;
      delete store.afterGet;
      await approle.write(await mount(), 'other', { roleId: 'same', token: {} });
    };
    expect(await refusal(approle.write(await mount(), 'web', { roleId: 'same', token: {} }))).to.match(/already in use/);
    expect(await approle.roleNameOf(await mount(), 'same')).to.equal('other');
  });

  it('may be chosen by the caller if no other role has it', async () => {
    const { approle, secret, enter, mount, roleId } = await withRole();
    await approle.write(await mount(), 'web', { roleId: 'chosen', token: {} });
    const { secretId } = await secret();
    expect(await refusal(enter(secretId, { role: 'chosen' }))).to.equal('none');
    expect(await refusal(enter(secretId, { role: roleId }))).to.equal(invalid);
    expect(await refusal(approle.write(await mount(), 'other', { roleId: 'chosen', token: {} }))).to.match(/already in use/);
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
      methods: lightMethods,
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
    const approle = logins.opened('approle') as AppRoles;
    await approle.write(mount, 'web', { token: {} });
    const { secretId } = await approle.createSecretId(mount, 'web', { ttlS: 60 });
    clock.now += 24 * hour * 1000;
    expect(await tokens.authenticate(token)).to.equal(undefined);
    expect([(await registry.sweep(10)).removed, await logins.sweep(10)]).to.deep.equal([0, 0]);
    clock.now -= 24 * hour * 1000;
    expect(await tokens.authenticate(token)).not.to.equal(undefined);
    expect(await approle.findSecretId(mount, 'web', { secretId })).not.to.equal(undefined);
    due.now += 24 * hour * 1000;
    expect([(await registry.sweep(10)).removed, await logins.sweep(10)]).to.deep.equal([1, 1]);
  });
});

describe('a secret id that is expired by a wrong clock', () => {
  for (const by of ['secretId', 'accessor'] as const)
    it(`is destroyed by its ${by === 'accessor' ? by : 'text'}, and stays destroyed when the clock is right again`, async () => {
      const { approle, mount, login, clock } = await withMethod('approle');
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
