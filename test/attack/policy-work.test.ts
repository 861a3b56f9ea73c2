// @live
// Large policies delay no other caller: their work runs in slices, and the rules of one token are limited.
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';

const rulesOf = (word: string, count = 4900): string =>
  Array.from({ length: count }, (_, n) => `path "+/${word}/+/x${n}" { capabilities = ["read"] }`).join('\n');

describe('policies with many rules', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  const tokenOf = async (server: LiveServer, policies: readonly string[]): Promise<string> =>
    (await server.call('POST', 'auth/token/create', { policies })).string('auth.client_token');

  /** Returns the number of answers from sys/health while `work` ran. */
  async function healthDuring(server: LiveServer, work: Promise<unknown>): Promise<number> {
    let done = false;
    let answers = 0;
    const ended = work.finally(() => {
      done = true;
    });
    while (!done) {
      const { status } = await server.call('GET', 'sys/health', undefined, null);
      expect(status).to.equal(200);
      if (!done) answers += 1;
    }
    await ended;
    return answers;
  }

  it('are written, compiled and evaluated while others are served, and a token with too many rules gets 403', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    const names = ['a', 'b', 'c'];
    // Repeated because this process may stall while the node works.
    await until('others are served while policies are written', async () => {
      const writing = Promise.all(names.map((name) => server.call('PUT', `sys/policies/acl/${name}`, { policy: rulesOf(name) })));
      const answers = await healthDuring(server, writing);
      for (const { status } of await writing) expect(status).to.equal(204);
      return answers > 2;
    });
    const paths = Array.from({ length: 1000 }, (_, n) => `q/a/${n}/x${n}`);
    await until('others are served while policies are evaluated', async () => {
      const asking = server.call('POST', 'sys/capabilities-self', { paths }, await tokenOf(server, ['a', 'b']));
      const answers = await healthDuring(server, asking);
      const told = await asking;
      expect(told.status).to.equal(200);
      expect(told.at('data.q/a/7/x7')).to.deep.equal(['read']);
      return answers > 2;
    });

    const tooMany = await tokenOf(server, names);
    const refused = await server.call('GET', 'auth/token/lookup-self', undefined, tooMany);
    expect([refused.status, refused.at('errors')]).to.deep.equal([
      403,
      ['the policies of this token have more than 10000 rules together'],
    ]);
    const one = `${rulesOf('d', 5000)}\npath "more" { capabilities = ["read"] }`;
    expect((await server.call('PUT', 'sys/policies/acl/d', { policy: one })).status).to.equal(400);
    // A smaller policy gives the token its rights back.
    await server.call('PUT', 'sys/policies/acl/c', { policy: 'path "a" { capabilities = ["read"] }' });
    await server.call('PUT', 'sys/policies/acl/b', { policy: 'path "b" { capabilities = ["read"] }' });
    expect((await server.call('GET', 'auth/token/lookup-self', undefined, tooMany)).status).to.equal(200);
  });
});
