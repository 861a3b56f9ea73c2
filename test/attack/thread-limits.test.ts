// @live
// A caller that fills the limits of a node with gateways: it gets its part, over all threads, and the other callers are served.
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { startNode } from '../process/gateways/clients.ts';
import { Connection } from '../process/gateways/connection.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { ask } from './callers.ts';

const limits = { reads: 12, waiting: 9 };
const plaintext = { plaintext: 'aGVsbG8=' };

describe('a flood of one token on all threads of a node', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  after(() => bench.clean());

  const figure = async ({ stderr }: LiveServer, line: string): Promise<number> => {
    const address = /"telemetry":"(http[^"]+)"/.exec(stderr)?.[1];
    const page = await (await fetch(`${address}/metrics`)).text();
    return Number(
      page
        .split('\n')
        .find((each) => each.startsWith(`${line} `))
        ?.split(' ')[1],
    );
  };

  it('is refused with 503 and Retry-After beyond the limits, while other tokens are served, and leaves no place taken', async () => {
    const { server, rootToken } = await startNode(bench, undefined, { more: { limits } });
    const admin = new Connection(server.url, rootToken);
    await admin.data('POST', 'transit/keys/slow', { type: 'rsa-4096' });
    const { auth } = JSON.parse((await admin.call('POST', 'auth/token/create', { policies: ['root'] })).text);
    const flooding: string = auth.client_token;
    server.secrets.learn(flooding);
    const refused: unknown[] = [];
    const wrong: unknown[] = [];
    const end = new AbortController();
    const flood = async (): Promise<void> => {
      while (!end.signal.aborted) {
        const { status, headers } = await ask(server.url, 'POST', 'transit/sign/slow', {
          body: { input: 'aGVsbG8=' },
          token: flooding,
        });
        if (status === 503) refused.push(headers['retry-after']);
        else if (status !== 200) wrong.push(status);
      }
    };
    const floods = Promise.all(Array.from({ length: 48 }, flood));
    floods.catch(() => undefined); // thrown below
    try {
      await until('requests are refused', () => Promise.resolve(refused.length > 0));
      for (let n = 0; n < 12; n += 1) {
        const { status, text } = await ask(server.url, 'POST', 'transit/encrypt/shared', { body: plaintext, token: rootToken });
        expect(status, text).to.equal(200);
      }
    } finally {
      end.abort();
      await floods;
    }
    expect(wrong).to.deep.equal([]);
    expect([...new Set(refused)]).to.deep.equal(['1']);
    await until('no request waits', async () => (await figure(server, 'svc_core_requests_waiting{kind="reads"}')) === 0);
    // All places are free again: with one that was lost, a token could not have its part.
    const connections = Array.from({ length: 12 }, () => new Connection(server.url, rootToken));
    for (const each of connections) expect((await each.call('POST', 'transit/encrypt/shared', plaintext)).status).to.equal(200);
    for (const each of [admin, ...connections]) each.close();
  });
});
