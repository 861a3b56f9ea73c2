import { expect } from 'chai';
import { exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { refusal } from '../../../access/test/fixtures.ts';
import { withMethod } from './login-setup.ts';

type Method = Awaited<ReturnType<typeof withMethod>>;

/** Counts the records that a refused login reads: existing and missing ones, since both take time. */
async function reads(
  { store }: Method,
  login: () => Promise<unknown>,
): Promise<{ refused: string; found: number; absent: number }> {
  const paths: string[] = [];
  store.afterGet = async (path) => void paths.push(path);
  const refused = await refusal(login());
  delete store.afterGet;
  const records = await Promise.all(paths.map((path) => store.get(path)));
  const found = records.filter((record) => record !== undefined).length;
  return { refused, found, absent: records.length - found };
}

describe('a refused login', () => {
  it('by role id reads as many records for an existing role as for an unknown one', async () => {
    const all = await withMethod('approle');
    const { approle } = all;
    await approle.write(await all.mount(), 'web', { token: { policies: ['a'] } });
    const mount = await all.mount();
    const known = (await approle.roles.find(mount.id, 'web'))?.value.roleId ?? '';
    const login = await all.login();
    const enter = (roleId: string) => async () => {
      await approle.roleNameOf(mount, roleId); // as the quotas do before each login
      return approle.login(login, roleId, 'wrong');
    };
    const there = await reads(all, enter(known));
    expect(there.refused).to.equal('invalid_request: invalid role or secret ID');
    expect(await reads(all, enter('00000000-0000-0000-0000-000000000000'))).to.deep.equal(there);
  });

  it('by user name reads as many records for an existing user as for an unknown one', async () => {
    const all = await withMethod('userpass');
    await all.userpass.write(await all.mount(), 'amy', { password: 'p', token: {} });
    const login = await all.login();
    const there = await reads(all, () => all.userpass.login(login, 'amy', 'wrong'));
    const absent = await reads(all, () => all.userpass.login(login, 'bob', 'wrong'));
    expect(there.refused).to.equal('invalid_request: invalid username or password');
    expect(absent).to.deep.equal(there);
  });

  it('by JWT reveals that the role does not exist only for a valid JWT', async () => {
    const [pair, stranger] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')];
    const all = await withMethod('jwt');
    const { jwt } = all;
    const keys = [await exportSPKI(pair.publicKey)];
    await jwt.configure(await all.mount(), { keys, issuer: 'https://issuer', algorithms: ['ES256'] });
    await jwt.write(await all.mount(), 'ci', { audiences: ['transitd'], userClaim: 'sub', token: {} });
    const login = await all.login();
    const claims = { iss: 'https://issuer', aud: 'transitd', sub: 'job', exp: all.clock.now / 1000 + 600 };
    const signed = (key: typeof pair.privateKey) => new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(key);
    const forged = await signed(stranger.privateKey);
    for (const bad of [forged, 'x.y.z', '']) {
      const there = await reads(all, () => jwt.login(login, 'ci', bad));
      const absent = await reads(all, () => jwt.login(login, 'none', bad));
      expect(absent).to.deep.equal(there);
    }
    const good = await signed(pair.privateKey);
    expect(await refusal(jwt.login(login, 'none', good))).to.equal('invalid_request: unknown role');
    expect(await refusal(jwt.login(login, 'ci', good))).to.equal('none');
  });
});
