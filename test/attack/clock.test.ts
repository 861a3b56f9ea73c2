// @live
// The wall clock of a node jumps. When the clock is correct again, every acknowledged change is still in force.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';

/** libfaketime for processes with threads, where Debian and its derivatives install it (package `libfaketime`). */
const fakeTime = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`)
  .find((file) => existsSync(file));

describe('a wall clock that jumps a day ahead', () => {
  const bench = new Workbench();
  after(() => bench.clean());
  let server: LiveServer;
  let setClock: (offset: string) => void;

  before(async function () {
    this.timeout(processMs);
    if (fakeTime === undefined) throw new Error('libfaketime is not installed: apt-get install libfaketime');
    const dataDir = bench.folder();
    const file = join(bench.folder(), 'time');
    setClock = (offset) => writeFileSync(file, `${offset}\n`);
    setClock('+0');
    const env = {
      LD_PRELOAD: fakeTime,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
    server = await bench.launch({ dataDir, env }).ready();
  });

  const made = async (body: object = {}) => {
    const { status, ...answer } = await server.call('POST', 'auth/token/create', { policies: ['default'], ttl: '1h', ...body });
    expect(status).to.equal(200);
    const at = (path: string) => String((JSON.parse(answer.text) as { auth: Record<string, unknown> }).auth[path]);
    return { token: at('client_token'), accessor: at('accessor') };
  };
  const statusOf = async (token: string): Promise<number> =>
    (await server.call('GET', 'auth/token/lookup-self', undefined, token)).status;
  const trusted = async (): Promise<string | undefined> =>
    /^svc_core_clock_trusted (\d)$/m.exec((await server.call('GET', 'sys/metrics?format=prometheus')).text)?.[1];

  it('does not undo a revocation and does not delete a live token', async function () {
    this.timeout(processMs);
    const tokens = {
      kept: await made(),
      byToken: await made({ policies: ['root'] }),
      byAccessor: await made(),
      alone: await made(),
    };
    const child = (await server.call('POST', 'auth/token/create', { ttl: '1h' }, tokens.byToken.token)).string(
      'auth.client_token',
    );
    expect(await trusted()).to.equal('1');

    setClock('+1d');
    expect(await statusOf(tokens.kept.token), 'expired by the wall clock').to.equal(403);
    expect((await server.call('POST', 'auth/token/revoke', { token: tokens.byToken.token })).status).to.equal(204);
    const byAccessor = await server.call('POST', 'auth/token/revoke-accessor', { accessor: tokens.byAccessor.accessor });
    expect(byAccessor.status).to.equal(204);
    expect((await server.call('POST', 'auth/token/revoke-orphan', { token: tokens.alone.token })).status).to.equal(204);
    expect((await server.call('POST', 'auth/token/renew', { token: tokens.kept.token })).status).to.equal(400);
    expect((await server.call('POST', 'auth/token/tidy', {})).status).to.equal(202);
    await server.log(/the wall clock deviates from the monotonic clock/);
    expect(await trusted()).to.equal('0');

    setClock('+0');
    await server.log(/the wall clock agrees with the monotonic clock again/);
    expect(await trusted()).to.equal('1');
    expect(await statusOf(tokens.kept.token), 'was not deleted').to.equal(200);
    for (const ended of [tokens.byToken.token, tokens.byAccessor.token, tokens.alone.token, child])
      expect(await statusOf(ended), 'stays revoked').to.equal(403);
  });

  it('does not undo the destruction of a secret id', async function () {
    this.timeout(processMs);
    expect((await server.call('POST', 'sys/auth/machines', { type: 'approle' })).status).to.equal(204);
    expect((await server.call('POST', 'auth/machines/role/web', { secret_id_ttl: '1h' })).status).to.equal(204);
    const role_id = (await server.call('GET', 'auth/machines/role/web/role-id')).string('data.role_id');
    const secret_id = (await server.call('POST', 'auth/machines/role/web/secret-id', {})).string('data.secret_id');
    setClock('+1d');
    expect((await server.call('POST', 'auth/machines/role/web/secret-id/destroy', { secret_id })).status).to.equal(204);
    setClock('+0');
    expect((await server.call('POST', 'auth/machines/login', { role_id, secret_id }, null)).status).to.equal(400);
  });

  it('does not lengthen the life of a token that is created meanwhile, once it is set right', async function () {
    this.timeout(processMs);
    setClock('+1d');
    const { token } = await made({ ttl: '1h' });
    expect(await statusOf(token), 'it is not refused at once').to.equal(200);
    const ttl = async () => Number((await server.call('GET', 'auth/token/lookup-self', undefined, token)).at('data.ttl'));
    setClock('+0');
    await until('its date is corrected', async () => (await ttl()) <= 3600);
    expect(await ttl()).to.be.greaterThan(3000);
    await server.log(/corrected the dates of tokens/); // it was dated by the clock that was ahead
  });

  it('and back by a day does not revive an expired token', async function () {
    this.timeout(processMs);
    const { token } = await made({ ttl: '1s' });
    await until('the token has expired', async () => (await statusOf(token)) === 403);
    setClock('-1d');
    expect(await statusOf(token)).to.equal(403);
    setClock('+0');
  });
});
