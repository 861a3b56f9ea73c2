import { expect } from 'chai';
import { TransitdClient } from '../src/index.ts';
import { NodeChoice } from '../src/node-choice.ts';

const [read, change] = [{ isChange: false }, { isChange: true }];

/** Three nodes with a clock that the test moves. */
class Nodes {
  nowMs = 0;
  readonly asked: number[] = [];
  /** The status of each node; undefined for one that does not answer. */
  statuses: (number | undefined)[];
  readonly #hanging: (() => void)[] = [];
  readonly choice: NodeChoice;

  constructor(...statuses: (number | undefined)[]) {
    this.statuses = statuses;
    this.choice = new NodeChoice(
      statuses.length,
      {},
      {
        nowMs: () => this.nowMs,
        ask: (place) => {
          this.asked.push(place);
          const status = this.statuses[place];
          if (status !== undefined) return Promise.resolve(status);
          return new Promise((_, reject) => this.#hanging.push(() => reject(new Error('no answer in time'))));
        },
      },
    );
  }

  /** Ends the calls that were not answered, as their time limit does. */
  async expire(): Promise<void> {
    for (const end of this.#hanging.splice(0)) end();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('the choice of a node', () => {
  for (const [statuses, forReads, forChanges] of [
    [
      [473, 200, 473],
      [0, 1, 2],
      [1, 0, 2],
    ],
    [
      [503, 473, 200],
      [1, 2, 0],
      [2, 1, 0],
    ],
    [
      [429, 474, 200],
      [2, 0, 1],
      [2, 0, 1],
    ],
    [
      [530, 501, 503],
      [0, 1, 2],
      [0, 1, 2],
    ],
    [
      [undefined, 473, 200],
      [1, 2, 0],
      [2, 1, 0],
    ],
  ] as const)
    it(`with the health ${statuses.join(', ')}: ${forReads.join()} for reads, ${forChanges.join()} for changes`, async () => {
      const { choice } = new Nodes(...statuses);
      await choice.order(read);
      expect(await choice.order(read)).to.deep.equal(forReads);
      expect(await choice.order(change)).to.deep.equal(forChanges);
    });

  it('prefers the nearest of the nodes that serve', async () => {
    const durations = [30, 5, 20];
    let nowMs = 0;
    const choice = new NodeChoice(
      3,
      {},
      {
        nowMs: () => nowMs,
        ask: async (place) => {
          await Promise.resolve();
          nowMs += durations[place] ?? 0;
          return 473;
        },
      },
    );
    await choice.order(read);
    await new Promise((resolve) => setImmediate(resolve));
    expect((await choice.order(read))[2], 'the farthest').to.equal(2);
  });

  it('asks again after the interval, without holding up requests, and waits for answers after a long pause', async () => {
    const nodes = new Nodes(200, 473);
    expect(await nodes.choice.order(change)).to.deep.equal([0, 1]);
    await nodes.choice.order(read);
    expect(nodes.asked).to.deep.equal([0, 1]);
    nodes.statuses = [503, 200];
    nodes.nowMs = 5000;
    expect(await nodes.choice.order(change), 'the answers are not there yet').to.deep.equal([0, 1]);
    expect(nodes.asked).to.deep.equal([0, 1, 0, 1]);
    await nodes.expire();
    expect(await nodes.choice.order(change)).to.deep.equal([1, 0]);
    nodes.statuses = [200, 503];
    nodes.nowMs = 15_000;
    expect(await nodes.choice.order(change)).to.deep.equal([0, 1]);
  });

  it('avoids a node that failed until it is asked again', async () => {
    const nodes = new Nodes(200, 473);
    await nodes.choice.order(read);
    nodes.choice.failed(0);
    expect(await nodes.choice.order(read)).to.deep.equal([1, 0]);
    nodes.nowMs = 10_000;
    expect((await nodes.choice.order(change))[0]).to.equal(0);
  });

  it('does not ask a second time while nodes hang', async () => {
    const nodes = new Nodes(undefined, 200);
    await nodes.choice.order(read);
    nodes.nowMs = 60_000;
    await nodes.choice.order(read);
    expect(nodes.asked).to.deep.equal([0, 1]);
    await nodes.expire();
    await nodes.choice.order(read);
    expect(nodes.asked).to.deep.equal([0, 1, 0, 1]);
  });

  it('sends changes to the active node, and no token with the questions about health', async () => {
    const seen: string[] = [];
    const client = new TransitdClient({
      addresses: ['http://a', 'http://b'],
      token: 's.secret',
      byHealth: {},
      nowMs: () => 0,
      fetch: async (input, init) => {
        const { host, pathname } = new URL(String(input));
        seen.push(`${host} ${pathname} ${new Headers(init?.headers).get('X-Service-Token') ?? 'without a token'}`);
        if (pathname === '/v1/sys/health') return new Response('{}', { status: host === 'b' ? 200 : 473 });
        return Response.json({ data: {} });
      },
    });
    await client.transit().rotateKey('k');
    await client.sys.sealStatus();
    expect(seen).to.deep.equal([
      'a /v1/sys/health without a token',
      'b /v1/sys/health without a token',
      'b /v1/transit/keys/k/rotate s.secret',
      'a /v1/sys/seal-status without a token',
    ]);
  });

  it('tries the next node after a failure, and goes there at once with the next request', async () => {
    const seen: string[] = [];
    const client = new TransitdClient({
      addresses: ['http://a', 'http://b'],
      byHealth: {},
      nowMs: () => 0,
      fetch: async (input) => {
        const { host, pathname } = new URL(String(input));
        if (pathname === '/v1/sys/health') return new Response('{}', { status: host === 'a' ? 200 : 473 });
        seen.push(host);
        if (host === 'a')
          throw new TypeError('fetch failed', { cause: Object.assign(new Error('gone'), { code: 'ECONNREFUSED' }) });
        return Response.json({ data: { keys: [] } });
      },
    });
    await client.transit().keys();
    await client.transit().keys();
    expect(seen).to.deep.equal(['a', 'b', 'b']);
  });
});
