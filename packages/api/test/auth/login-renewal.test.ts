import type { TokenSettingsChange } from '@transitd/access';
import { expect } from 'chai';
import { hour, refusal } from '../../../access/test/fixtures.ts';
import { withMethod } from './login-setup.ts';

const changed = /^invalid_request: lease is not renewable: the policies of the user or role of its login have changed$/;
const gone = /^invalid_request: lease is not renewable: the user or role of its login no longer exists$/;

/** A token of each auth method that needs no other service, and functions that change its user or role. */
const methods = {
  userpass: async (settings: TokenSettingsChange) => {
    const all = await withMethod('userpass');
    const { userpass } = all;
    const write = async (token: TokenSettingsChange) => userpass.write(await all.mount(), 'amy', { password: 'p', token });
    await write(settings);
    const { token } = await userpass.login(await all.login(), 'amy', 'p');
    return { ...all, token, write, remove: async () => userpass.users.delete((await all.mount()).id, 'amy') };
  },
  approle: async (settings: TokenSettingsChange) => {
    const all = await withMethod('approle');
    const { approle } = all;
    const write = async (token: TokenSettingsChange) => approle.write(await all.mount(), 'web', { token });
    await write(settings);
    const { secretId } = await approle.createSecretId(await all.mount(), 'web', {});
    const roleId = (await approle.roles.find((await all.mount()).id, 'web'))?.value.roleId ?? '';
    const { token } = await approle.login(await all.login(), roleId, secretId);
    return { ...all, token, write, remove: async () => approle.delete(await all.mount(), 'web') };
  },
};

for (const [kind, make] of Object.entries(methods))
  describe(`a renewal of a token of ${kind}`, () => {
    it('is refused after its policies have changed, and allowed when they are restored', async () => {
      const { token, registry, write } = await make({ policies: ['a', 'b'], periodS: hour });
      expect(await refusal(registry.renew({ token }, 0))).to.equal('none');
      for (const policies of [['a'], [], ['a', 'b', 'c'], ['b', 'c']]) {
        await write({ policies });
        expect(await refusal(registry.renew({ token }, 0)), policies.join()).to.match(changed);
      }
      await write({ policies: ['B ', 'default', 'a'] });
      expect(await refusal(registry.renew({ token }, 0))).to.equal('none');
    });

    it('is refused after the user or role is deleted or its auth method disabled', async () => {
      const { token, registry, remove } = await make({ policies: ['a'], periodS: hour });
      await remove();
      expect(await refusal(registry.renew({ token }, 0))).to.match(gone);
    });

    it('does not find a token whose auth method was disabled', async () => {
      const { token, registry, logins } = await make({ policies: ['a'], periodS: hour });
      await logins.mounts.disable('m');
      expect(await registry.renew({ token }, 0)).to.equal(undefined);
    });

    it('uses the present period, and none after it was withdrawn', async () => {
      const { token, registry, write, clock } = await make({ policies: ['a'], periodS: hour });
      await write({ periodS: 60 });
      expect((await registry.renew({ token }, 0))?.ttlS).to.equal(60);
      await write({ periodS: 0, ttlS: 90, maxTtlS: 120 });
      expect((await registry.renew({ token }, 0))?.ttlS).to.equal(90);
      clock.now += 60_000;
      expect((await registry.renew({ token }, 0))?.ttlS).to.equal(60);
      await write({ maxTtlS: 100, ttlS: 50 });
      expect((await registry.renew({ token }, 0))?.ttlS).to.equal(40);
    });

    it('is bounded by the present maximum TTL, and never shortens the token', async () => {
      const { token, registry, write, clock, who } = await make({ policies: ['a'], ttlS: hour });
      clock.now += 600_000;
      await write({ ttlS: 60, maxTtlS: 60 });
      expect(await refusal(registry.renew({ token }, 0))).to.equal(
        'invalid_request: lease is not renewable: its maximum TTL is over',
      );
      expect(await who(token)).not.to.equal(undefined);
    });

    it('is not written if the policies change at the same time', async () => {
      const { token, registry, write, store } = await make({ policies: ['a'], periodS: hour });
      let isFirst = true;
      store.afterGet = async (path) => {
        if (!isFirst || !/^access\/login\/[^/]+\/(?:user|role)\//.test(path)) return;
        isFirst = false;
        await write({ policies: ['b'] });
      };
      expect(await refusal(registry.renew({ token }, 0))).to.match(changed);
    });
  });
