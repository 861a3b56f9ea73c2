import { expect } from 'chai';
import { refusal } from '../../../access/test/fixtures.ts';
import { withMethod } from './login-setup.ts';

describe('an auth method', () => {
  it('is listed, found and tuned', async () => {
    const { logins } = await withMethod('userpass');
    await logins.mounts.enable('other', 'approle', { description: 'machines', maxTtlS: 60 });
    expect((await logins.mounts.list()).map(({ path, type }) => [path, type])).to.deep.equal([
      ['m', 'userpass'],
      ['other', 'approle'],
    ]);
    expect(await logins.mounts.tune('other', { defaultTtlS: 30 })).to.equal(true);
    expect(await logins.mounts.find('other')).to.deep.include({ description: 'machines', maxTtlS: 60, defaultTtlS: 30 });
    expect(await logins.mounts.tune('nowhere', {})).to.equal(false);
    expect(await logins.mounts.find('nowhere')).to.equal(undefined);
  });

  for (const [path, type, text] of [
    ['m', 'userpass', 'path is already in use at m/'],
    ['token', 'userpass', 'path is already in use at token/'],
    ['x', 'token', 'the type of an auth method'],
    ['x', '', 'the type of an auth method'],
    ['', 'userpass', 'the path of an auth method must have'],
    ['a//b', 'userpass', 'the path of an auth method must have'],
    ['a/../b', 'userpass', 'the path of an auth method must have'],
    ['m/n', 'userpass', 'path is already in use at m/'],
    ['a/tune', 'userpass', 'the path of an auth method must not have "tune"'],
    ['a:b', 'userpass', 'the path of an auth method must have'],
    ['..', 'userpass', 'the path of an auth method must have'],
  ] as const)
    it(`is not enabled at ${JSON.stringify(path)} as ${JSON.stringify(type)}`, async () => {
      const { logins } = await withMethod('userpass');
      expect(await refusal(logins.mounts.enable(path, type, {}))).to.match(new RegExp(`^invalid_request: .*${text}`));
    });

  it('has a default TTL of at most its maximum TTL', async () => {
    const { logins } = await withMethod('userpass');
    expect(await refusal(logins.mounts.tune('m', { defaultTtlS: 2, maxTtlS: 1 }))).to.match(/default_lease_ttl must be at most/);
  });

  it('that is disabled revokes its tokens and their descendants, cached or not', async () => {
    const all = await withMethod('userpass');
    const { logins, userpass, registry, tokens, who, login } = all;
    await userpass.write(await all.mount(), 'amy', { password: 'p', token: { policies: ['a'] } });
    const { token } = await userpass.login(await login(), 'amy', 'p');
    const principal = await who(token);
    if (principal === undefined) throw new Error('no token');
    const child = await registry.create({}, { principal, privileged: false, makesOrphans: false, path: 'auth/token/create' });
    const batch = await registry.create(
      { type: 'batch' },
      { principal, privileged: false, makesOrphans: false, path: 'auth/token/create' },
    );
    const good = async () => Promise.all([token, child.token, batch.token].map(async (each) => (await who(each)) !== undefined));
    expect(await good()).to.deep.equal([true, true, true]);
    await logins.mounts.disable('m');
    expect(await good()).to.deep.equal([false, false, false]);
    tokens.clear();
    expect(await good()).to.deep.equal([false, false, false]);
  });

  it('that is enabled again at the same path has no tokens or records of the previous method; the sweep deletes these', async () => {
    const { logins, userpass, login, mount, who, records, swept } = await withMethod('userpass');
    await userpass.write(await mount(), 'amy', { password: 'p', token: {} });
    const { token } = await userpass.login(await login(), 'amy', 'p');
    await logins.mounts.disable('m');
    await logins.mounts.enable('m', 'userpass', {});
    expect(await who(token)).to.equal(undefined);
    expect(await userpass.users.list((await mount()).id)).to.deep.equal([]);
    await userpass.write(await mount(), 'bob', { password: 'p', token: {} });
    await swept();
    expect((await records('access/login/')).map(({ path }) => path.split('/').slice(3).join('/'))).to.deep.equal(['user/bob']);
    expect(await records('access/child/')).to.deep.equal([]);
    expect(await records('access/due/')).to.deep.equal([]);
  });

  it('that is tuned keeps its tokens', async () => {
    const { logins, userpass, login, mount, who } = await withMethod('userpass');
    await userpass.write(await mount(), 'amy', { password: 'p', token: {} });
    const { token } = await userpass.login(await login(), 'amy', 'p');
    expect(await who(token)).to.include({ root: false });
    await logins.mounts.tune('m', { description: 'tuned' });
    expect(await who(token)).to.include({ root: false });
  });

  it('that is disabled during a lookup of its token makes the token invalid', async () => {
    const { logins, userpass, login, mount, who, tokens, store } = await withMethod('userpass');
    await userpass.write(await mount(), 'amy', { password: 'p', token: {} });
    const { token } = await userpass.login(await login(), 'amy', 'p');
    tokens.clear();
    store.afterGet = async (path) => {
      if (path !== 'access/auth/m') return;
      delete store.afterGet;
      await logins.mounts.disable('m');
    };
    expect(await who(token)).to.equal(undefined);
  });

  it('bounds the TTLs of its tokens, within the limits of the node', async () => {
    const { logins, userpass, login, mount, registry, clock } = await withMethod('userpass');
    await userpass.write(await mount(), 'amy', { password: 'p', token: { ttlS: 1000 } });
    await logins.mounts.tune('m', { maxTtlS: 600, defaultTtlS: 60 });
    const { token, ttlS, warnings } = await userpass.login(await login(), 'amy', 'p');
    expect([ttlS, warnings.length]).to.deep.equal([600, 1]);
    clock.now += 500_000;
    expect((await registry.renew({ token }, 1000))?.ttlS).to.equal(100);
    await userpass.write(await mount(), 'amy', { token: { ttlS: 0 } });
    expect((await userpass.login(await login(), 'amy', 'p')).ttlS).to.equal(60);
  });
});
