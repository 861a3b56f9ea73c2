// @live
// Wrapped responses of many small values, which are parsed again for the audit log when they are unwrapped.
import { expect } from 'chai';
import { startAudited } from '../process/audited-server.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { ask } from './callers.ts';

describe('wrapped responses of many values', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let rootToken = '';
  before(async () => {
    ({ server, rootToken } = await startAudited(bench, { env: { NODE_OPTIONS: '--max-old-space-size=300' } }));
  });
  after(() => bench.clean());

  it('are unwrapped twelve at once by a caller of the default policy, and the node still answers', async () => {
    const made = await server.call('POST', 'auth/token/create', { policies: ['default'] }, rootToken);
    const token = made.string('auth.client_token');
    const body = Buffer.from(`{"a":[${Array.from({ length: 180_000 }, (_, n) => `{"${n}":0}`).join()}]}`);
    const wrapped: string[] = [];
    for (let n = 0; n < 12; n += 1) {
      const headers = { 'X-Service-Token': token, 'X-Service-Wrap-TTL': '600' };
      const answer = await fetch(`${server.url}/v1/sys/wrapping/wrap`, { method: 'POST', headers, body });
      wrapped.push(((await answer.json()) as { wrap_info: { token: string } }).wrap_info.token);
    }
    const answers = await Promise.all(
      wrapped.map((each) => ask(server.url, 'POST', 'sys/wrapping/unwrap', { body: {}, token: each })),
    );
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(12).fill(200));
    expect((await server.call('GET', 'sys/health', undefined, null)).status).to.equal(200);
  });
});
