import { expect } from 'chai';
import { type CallParts, clusterCalls } from '../src/calls.ts';
import type { EchoNews } from '../src/standbys/echo-wire.ts';
import type { ClusterAnswer } from '../src/transport/cluster-listener.ts';

const news: EchoNews = {
  name: 'n2',
  apiAddress: 'http://10.0.0.2:8200',
  clusterAddress: '10.0.0.2:8201',
  appliedIndex: 7,
  intervalMs: 1_000,
  serves: true,
  sealed: false,
  differs: false,
  readsAuthorities: true,
  version: '0.1.0',
  hostname: 'two',
  listIndex: 0,
};
const committed = { index: 5, members: [] };

/** An echo to a node that leads under a lease, unless said otherwise. */
async function echo(said: object, node: { isActive?: boolean; removed?: boolean } = {}) {
  const heard: number[] = [];
  const driver = { status: () => ({ commitIndex: 9 }) };
  const machine = { applied: { appliedIndex: 9, digest: 1n } };
  const calls = clusterCalls({
    storage: { driver, machine, holdsLease: () => true, replica: { fresh: async () => undefined } },
    standbys: { heard: (id: number) => heard.push(id) },
    isActive: () => node.isActive ?? true,
    intervalMs: 1_000,
    committed: () => (node.removed ? undefined : committed),
    lists: { held: undefined, shown: async () => 'known' },
    isLeaderless: () => false,
    renewal: {},
    onDifference: () => undefined,
  } as unknown as CallParts);
  const call = { from: 2, certificate: '', body: Buffer.from(JSON.stringify(said)), query: new URLSearchParams() };
  const answer = (await calls['POST /cluster/echo']?.(call)) as Extract<ClusterAnswer, { status: number }>;
  return { status: answer.status, json: JSON.parse(JSON.stringify(answer.json)), heard };
}

describe('an echo that arrives', () => {
  it('is answered by the active node, which counts on what it has said', async () => {
    const { status, heard } = await echo(news);
    expect(status).to.equal(200);
    expect(heard).to.deep.equal([2]);
  });

  for (const intervalMs of [999, 1_001, 60_000])
    it(`of a node with an interval of ${intervalMs} ms is refused where it is 1000 ms, and lets nobody serve`, async () => {
      const refused = await echo({ ...news, intervalMs });
      expect(refused).to.deep.equal({ status: 409, json: { intervalMs: 1_000 }, heard: [] });
    });

  it('of a node that does not say its interval is malformed', async () => {
    const { intervalMs: _, ...rest } = news;
    expect(await echo(rest)).to.deep.include({ status: 400, heard: [] });
  });

  it('is told by a node that is not the active one whom it knows to be members', async () => {
    const refused = await echo(news, { isActive: false });
    expect(refused).to.deep.equal({ status: 503, json: { active: false, committed }, heard: [] });
  });

  it('is told of no members by a node that was removed', async () => {
    const refused = await echo(news, { isActive: false, removed: true });
    expect(refused).to.deep.equal({ status: 503, json: { active: false }, heard: [] });
  });
});
