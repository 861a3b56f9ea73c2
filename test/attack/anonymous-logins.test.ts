// @live
// A password check takes two threads for a tenth of a second. Anonymous logins must not delay other callers.
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { ask, Flood } from './callers.ts';

/** Of logins, at least. */
const waiting = 100;

describe('a flood of anonymous logins', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
    await server.call('POST', 'sys/auth/userpass', { type: 'userpass' });
    await server.call('POST', 'auth/userpass/users/amy', { password: 'correct horse', policies: 'default' });
  });
  after(() => bench.clean());

  it('does not delay writes, password changes or logins from another address, and gets 503 beyond its own limit', async () => {
    let name = 0;
    const flood = new Flood(200, () =>
      ask(server.url, 'POST', `auth/userpass/login/nobody${name++}`, { body: { password: 'x' }, from: '127.0.0.66' }),
    );
    try {
      const figure = async (line: string) => {
        const { text } = await server.call('GET', 'sys/metrics?format=prometheus');
        return Number(new RegExp(`^${line.replace(/[{}]/g, '\\$&')} (\\d+)$`, 'm').exec(text)?.[1]);
      };
      while ((await figure('svc_core_requests_waiting{kind="logins"}')) < waiting);
      const checked = (): number => flood.statuses.get(400) ?? 0;
      for (let n = 0; n < 5; n += 1)
        // Repeated because this process may stall and hear of many logins before it hears of the write.
        await until('a write is answered before the logins that wait', async () => {
          const before = checked();
          const write = await ask(server.url, 'POST', `transit/keys/k${n}`, { body: {}, token: server.rootToken });
          expect(write.status, write.text).to.equal(200);
          return checked() - before < waiting;
        });
      expect(await figure('svc_core_requests_executing{kind="changes"}')).to.equal(0);
      for (let n = 0; n < 2; n += 1) {
        const login = await ask(server.url, 'POST', 'auth/userpass/login/amy', {
          body: { password: 'correct horse' },
          from: '127.0.0.2',
        });
        expect(login.status, login.text).to.equal(200);
        const body = { password: 'correct horse' };
        expect((await server.call('POST', 'auth/userpass/users/amy/password', body)).status).to.be.oneOf([200, 204]);
      }
      expect(await figure('svc_core_requests_executing{kind="logins"}')).to.be.at.most(33);
    } finally {
      await flood.end();
    }
    expect([...flood.statuses.keys()])
      .to.include(503)
      .and.to.not.include(500);
  });
});
