// Logins, batch tokens and wrapped responses survive a crash: acknowledged changes stay in force, and no one-time secret is on disk.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Answer, type LiveServer, processMs, Workbench } from './live-server.ts';

describe('logins', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('survive a crash with every acknowledged use, revocation and disabling, and leave no secret on disk', async function () {
    this.timeout(processMs);
    const dataDir = bench.folder();
    let server: LiveServer = await bench.start({ dataDir });
    const crash = async (): Promise<void> => {
      await server.stop('SIGKILL');
      server = await bench.start({ dataDir });
    };
    const root = server.rootToken;
    const ask = async (method: string, path: string, body: object = {}, status = 200): Promise<Answer> => {
      const answer = await server.call(method, path, method === 'GET' ? undefined : body, root);
      expect(answer.status, `${method} ${path} ${answer.text}`).to.equal(status);
      return answer;
    };
    const isGood = async (token: string): Promise<boolean> =>
      (await server.call('GET', 'auth/token/lookup-self', undefined, token)).status === 200;
    const login = async (path: string, body: object): Promise<Answer> => server.call('POST', path, body, null);
    const unwrap = async (token: string): Promise<number> => (await server.call('POST', 'sys/wrapping/unwrap', {}, token)).status;

    await ask('POST', 'sys/auth/ar', { type: 'approle' }, 204);
    await ask('POST', 'auth/ar/role/web', { token_policies: 'default', secret_id_num_uses: 2 }, 204);
    const roleId = (await ask('GET', 'auth/ar/role/web/role-id')).string('data.role_id');
    const made = await ask('POST', 'auth/ar/role/web/secret-id');
    const pair = { role_id: roleId, secret_id: made.string('data.secret_id') };
    await ask('POST', 'sys/auth/up', { type: 'userpass' }, 204);
    const password = 'a password that is nowhere on disk';
    await ask('POST', 'auth/up/users/amy', { password }, 204);
    const amy = (await login('auth/up/login/amy', { password })).string('auth.client_token');
    const web = (await login('auth/ar/login', pair)).string('auth.client_token');
    const batch = (await ask('POST', 'auth/token/create', { type: 'batch', policies: ['default'] })).string('auth.client_token');
    const wrapped = async (): Promise<string> => {
      const headers = { 'X-Service-Token': root, 'X-Service-Wrap-TTL': '10m' };
      const body = JSON.stringify({ secret: 'an answer that is nowhere on disk' });
      const response = await fetch(`${server.url}/v1/sys/wrapping/wrap`, { method: 'POST', headers, body });
      return new Answer(response.status, response.headers, await response.text()).string('wrap_info.token');
    };
    const [taken, waiting] = [await wrapped(), await wrapped()];
    expect(await unwrap(taken)).to.equal(200);
    await crash();

    expect(await Promise.all([amy, web, batch].map(isGood))).to.deep.equal([true, true, true]);
    expect([await unwrap(taken), await unwrap(waiting), await unwrap(waiting)]).to.deep.equal([400, 200, 400]);
    expect((await login('auth/ar/login', pair)).status, 'the second use').to.equal(200);
    await ask('DELETE', 'sys/auth/up', {}, 204);
    await crash();

    expect(await Promise.all([amy, web, batch].map(isGood))).to.deep.equal([false, true, true]);
    expect((await login('auth/ar/login', pair)).status, 'a third use').to.equal(400);
    expect((await login('auth/up/login/amy', { password })).status).to.equal(404);
    expect((await server.stop()).code).to.equal(0);

    const secrets = [
      password,
      pair.secret_id,
      roleId,
      made.string('data.secret_id_accessor'),
      amy,
      web,
      batch,
      taken,
      waiting,
      'an answer that',
    ];
    const data = join(dataDir, 'data');
    const files = readdirSync(data, { recursive: true, encoding: 'utf8' }).map((name) => join(data, name));
    const contents = files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file));
    for (const secret of secrets)
      expect(
        contents.some((content) => content.includes(secret)),
        secret,
      ).to.equal(false);
    expect(
      contents.some((content) => content.includes('access/login/')),
      'paths are there to be read',
    ).to.equal(true);
  });
});
