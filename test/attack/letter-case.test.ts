// @live
// A denial for a user, a role or a policy applies whether a request writes the name in upper or lower case.
import { expect } from 'chai';
import { processMs, Workbench } from '../process/live-server.ts';
import { tokenWith } from '../process/token-with.ts';

describe('a denied name in upper or lower case', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it("stays denied: the caller can neither set the administrator's password nor become administrator", async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    for (const type of ['userpass', 'approle']) await server.call('POST', `sys/auth/${type}`, { type });
    const password = 'the right password';
    await server.call('POST', 'auth/userpass/users/admin', { password, token_policies: ['root-like'] });
    const token = await tokenWith(
      server,
      `path "auth/*" { capabilities = ["create", "read", "update", "delete", "list"] }
       path "auth/userpass/users/admin" { capabilities = ["deny"] }
       path "auth/approle/role/Deploy" { capabilities = ["deny"] }
       path "sys/policy*" { capabilities = ["create", "read", "update", "delete"] }
       path "sys/policies/acl/root-like" { capabilities = ["deny"] }
       path "sys/capabilities-self" { capabilities = ["update"] }`,
    );
    const attacks: readonly (readonly [verb: string, path: string, body?: object])[] = [
      ['POST', 'auth/userpass/users/admin', { password: 'mine' }],
      ['POST', 'auth/userpass/users/Admin', { password: 'mine' }],
      ['PUT', 'auth/userpass/users/ADMIN', { password: 'mine' }],
      ['POST', 'auth/userpass/users/%41dmin', { password: 'mine' }],
      ['POST', 'auth/userpass/users/Admin/password', { password: 'mine' }],
      ['POST', 'auth/userpass/users/admin/password', { password: 'mine' }],
      ['POST', 'auth/userpass/users/aDmin/policies', { token_policies: ['root-like'] }],
      ['DELETE', 'auth/userpass/users/adMin'],
      ['GET', 'auth/userpass/users/admiN'],
      ['POST', 'auth/approle/role/deploy', { token_policies: ['root-like'] }],
      ['POST', 'auth/approle/role/Deploy', { token_policies: ['root-like'] }],
      ['POST', 'auth/approle/role/deploy/role-id', { role_id: 'mine' }],
      ['POST', 'sys/policies/acl/Root-Like', { policy: 'path "*" { capabilities = ["sudo"] }' }],
      ['POST', 'sys/policies/acl/%20root-like', { policy: 'path "*" { capabilities = ["sudo"] }' }],
      ['POST', 'sys/policy/root-like', { policy: 'path "*" { capabilities = ["sudo"] }' }],
      ['POST', 'sys/policy/ROOT-like', { policy: 'path "*" { capabilities = ["sudo"] }' }],
    ];
    for (const [verb, path, body] of attacks) {
      expect((await server.call(verb, path, body, token)).status, `${verb} ${path}`).to.equal(403);
    }
    expect((await server.call('POST', 'auth/userpass/login/ADMIN', { password }, null)).status).to.equal(200);
    const paths = ['auth/userpass/users/Admin', 'auth/userpass/users/other', 'sys/policies/acl/Root-Like'];
    const told = await server.call('POST', 'sys/capabilities-self', { paths }, token);
    expect([told.at(paths[0] ?? ''), told.at(paths[2] ?? '')]).to.deep.equal([['deny'], ['deny']]);
    expect(told.at(paths[1] ?? '')).to.include('update');
  });
});
