// @live
// Bodies of 32 MB: many at once, announced but never sent, and sent slowly.
import { once } from 'node:events';
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { ask, HeldConnections, head } from './callers.ts';

const mib = 1024 * 1024;
const path = 'transit/hash/sha2-256';
const stranger = '127.0.0.66';

describe('large bodies', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  const held = new HeldConnections();
  let server: LiveServer;
  let token = '';
  /** Token of the caller at the other address. */
  let other = '';
  const large = Buffer.from(JSON.stringify({ input: 'A'.repeat(32 * mib - 16) }));
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
    token = server.rootToken;
    other = (await server.call('POST', 'auth/token/create', { policies: ['root'] })).string('auth.client_token');
  });
  afterEach(() => held.end());
  after(() => bench.clean());

  const figure = async (line: string): Promise<number> => {
    const { text } = await server.call('GET', 'sys/metrics?format=prometheus');
    return Number(
      text
        .split('\n')
        .find((each) => each.startsWith(`${line} `))
        ?.slice(line.length + 1),
    );
  };

  it('of 32 MiB all succeed, even twelve at once: some wait for memory', async () => {
    expect(large.length).to.be.within(31.9 * mib, 32 * mib);
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => ask(server.url, 'POST', path, { body: large, token: n % 2 === 0 ? token : other })),
    );
    expect(answers.map(({ status, text }) => (status === 200 ? 200 : text))).to.deep.equal(Array(12).fill(200));
    await until('all room is given back', async () => (await figure('svc_core_body_bytes')) === 0);
  });

  it('that are announced and not sent, or started and not finished, block no other caller', async () => {
    for (let n = 0; n < 200; n += 1) await held.open(server.url, head(path, 32 * mib, token), stranger);
    const begun = `${head(path, 32 * mib, token)}{"input":"${'A'.repeat(100_000)}`;
    const endless = `${head(path, 'chunked', token)}${`10000\r\n${'A'.repeat(0x10000)}\r\n`.repeat(20)}`;
    for (let n = 0; n < 20; n += 1) for (const sent of [begun, endless]) await held.open(server.url, sent, stranger);
    await until('some hold room', async () => (await figure('svc_core_body_bytes')) > 0);
    expect(await figure('svc_core_body_bytes'), 'and not all of it').to.be.below(128 * mib);
    const answer = await ask(server.url, 'POST', path, { body: large, token: other, from: '127.0.0.2', withinMs: 60_000 });
    expect(answer.status, answer.text).to.equal(200);
    held.end();
    await until('all room is given back', async () => (await figure('svc_core_body_bytes')) === 0);
  });

  it('that arrive too slowly get 408 with the reason', async () => {
    const socket = await held.open(server.url, `${head(path, 32 * mib, token)}{"input":"${'A'.repeat(100_000)}`);
    const trickle = setInterval(() => socket.write('A'.repeat(1000)), 100);
    try {
      const [answer] = await once(socket, 'data');
      expect(String(answer))
        .to.match(/^HTTP\/1\.1 408 /)
        .and.contain('the request body arrives too slowly: 327680 bytes in 5000 ms are needed');
    } finally {
      clearInterval(trickle);
    }
    await until('all room is given back', async () => (await figure('svc_core_body_bytes')) === 0);
  });
});
