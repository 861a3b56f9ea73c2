import { expect } from 'chai';
import { type Served, served } from '../served.ts';

describe('the parameter help', () => {
  let at: Served;
  before(async () => {
    at = await served();
    await at.ask('POST sys/auth/up', { body: { type: 'userpass' } });
  });
  after(() => at.close());

  for (const [path, words] of [
    ['transit/keys/missing', ['GET: ', 'POST: ', '    exportable: ']],
    ['transit/encrypt/missing', ['POST: Encrypt', '    batch_input: ']],
    ['transit/keys', ['LIST: ']],
    ['sys/mounts', ['GET: ']],
    ['sys/tools/random', ['POST: ', '    bytes: ']],
    ['auth/up/users/missing', ['POST (userpass): ', '    password: ']],
    ['auth/up/role/missing', ['POST (approle): ', 'POST (jwt): ', '    user_claim: ']],
  ] as const)
    it(`returns what ${path} is for, and does nothing`, async () => {
      const { status, body } = await at.ask(`GET ${path}?help=1`);
      expect([status, Object.keys(body)]).to.deep.equal([200, ['help']]);
      for (const word of words) expect(body.help).to.include(word);
    });

  for (const [line, status] of [
    ['GET nothing/keys/k?help=1', 404],
    ['GET transit/nothing?help=1', 404],
    ['GET transit/keys/missing?help=', 404],
    ['GET transit/encrypt/missing?help=', 405],
    ['DELETE transit/keys/missing?help=1', 400],
    ['GET sys/seal-status?help=1', 200],
  ] as const)
    it(`does not change ${line}`, async () => {
      const answer = await at.ask(line);
      expect([answer.status, answer.body.help]).to.deep.equal([status, undefined]);
    });

  it('needs the right to read the path', async () => {
    const policy = 'path "transit/keys/own" { capabilities = ["read"] }';
    await at.ask('POST sys/policies/acl/own', { body: { policy } });
    const { client_token: token } = (await at.ask('POST auth/token/create', { body: { policies: ['own'] } })).body.auth;
    expect((await at.ask('GET transit/keys/own?help=1', { token })).status).to.equal(200);
    for (const caller of [token, null, 's.unknown'])
      for (const path of ['transit/keys/other', 'transit/encrypt/own', 'nothing/keys/own', 'sys/mounts'])
        expect((await at.ask(`GET ${path}?help=1`, { token: caller })).status, path).to.equal(403);
  });
});
