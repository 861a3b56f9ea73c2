// @live
// A cluster whose nodes have gateway threads (decision 105): no request on any thread of any node misses a change that was answered before
// it began.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { changedCopy } from '../changed-copy.ts';
import { allChanges } from '../process/gateways/changes.ts';
import { answeredByGateways, contradictions, prepare, type Served } from '../process/gateways/clients.ts';
import { Connection, untilKnown } from '../process/gateways/connection.ts';
import { delays, delaysOf, faults } from '../process/gateways/faults.ts';
import type { ClusterOptions, LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

/** Each node counts its requests for a quota by itself. */
const clusterWide = Object.keys(allChanges).filter((name) => name !== 'a quota');
/** Longer than a change takes until all nodes have confirmed it; a gateway that lags for a second is replaced. */
const lateMs = 400;
const missingDrain = faults['a gateway does not take the changes before it answers'];

/** Returns whether the node's gateway has answered a request. Each request comes on a new connection, so some reach the gateway. */
async function isAnswering({ server, apiAddress }: LiveNode, { rootToken }: LiveCluster): Promise<boolean> {
  const connection = new Connection(apiAddress, rootToken, { isPatient: true });
  await untilKnown(() => connection.data('POST', 'transit/encrypt/shared', { plaintext: 'aGVsbG8=' }));
  connection.close();
  return (await answeredByGateways({ server })) > 0;
}

/** Checks that a client reads its own writes on all threads of the node that it uses. */
async function readsItsOwnWrites({ urls, rootToken }: Served): Promise<void> {
  for (const [n, url] of urls.entries()) {
    const connections = Array.from({ length: 12 }, () => new Connection(url, rootToken, { isPatient: true }));
    const [writer = new Connection(url, rootToken)] = connections;
    await untilKnown(() => writer.data('POST', `transit/keys/own-${n}`));
    for (let round = 0; round < 20; round++) {
      const written = round % 2 === 0;
      await untilKnown(() => writer.data('POST', `transit/keys/own-${n}/config`, { deletion_allowed: written }));
      const read = await Promise.all(connections.map((each) => untilKnown(() => each.data('GET', `transit/keys/own-${n}`))));
      expect(read.map(({ deletion_allowed }) => deletion_allowed)).to.deep.equal(connections.map(() => written));
    }
    for (const connection of connections) connection.close();
  }
}

describe('a cluster of nodes with a gateway each', function () {
  this.timeout(scenarioMs);
  const folders: string[] = [];
  after(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  const copyFolder = (): string => {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-copy-'));
    folders.push(folder);
    return folder;
  };

  const withGateways = (
    { program, storage = 'raft' }: Pick<ClusterOptions, 'program' | 'storage'>,
    task: (served: Served, cluster: LiveCluster) => Promise<void>,
  ) =>
    withCluster({ elections: 'never', workers: 1, storage, ...(program !== undefined && { program }) }, async (cluster) => {
      const leader = await cluster.settled();
      for (const { server } of cluster.nodes) await server.log(/"msg":"a gateway thread listens"/);
      await prepare(new Connection(leader.apiAddress, cluster.rootToken, { isPatient: true }));
      for (const node of cluster.nodes) await until(`the gateway of ${node.name} answers`, () => isAnswering(node, cluster));
      const urls = [leader, ...cluster.others(leader)].map(({ apiAddress }) => apiAddress);
      await task({ urls, rootToken: cluster.rootToken, isPatient: true }, cluster);
    });

  for (const { storage, rounds } of [
    { storage: 'raft', rounds: 3 },
    { storage: 'etcd', rounds: 2 },
  ] as const)
    it(`obeys each answered change on all threads of all nodes on ${storage}, and lets clients read their own writes`, () =>
      withGateways({ storage }, async (served, cluster) => {
        expect(await contradictions(served, { rounds, only: clusterWide })).to.deep.equal([]);
        for (const { server } of cluster.nodes) expect(await answeredByGateways({ server })).to.be.above(50);
        await readsItsOwnWrites(served);
      }));

  it('obeys each answered change while ports and drains are delayed', async () => {
    const program = await changedCopy(copyFolder(), delays);
    return withGateways({ program }, async (served) => {
      expect(await contradictions(served, { rounds: 1, only: clusterWide })).to.deep.equal([]);
    });
  });

  it('shows a planted fault: gateways do not take the changes before they answer', async () => {
    if (missingDrain === undefined) throw new Error('there is no such fault');
    const changes = [missingDrain, ...delaysOf(lateMs).filter(({ find }) => !find.includes(missingDrain.find))];
    return withGateways({ program: await changedCopy(copyFolder(), changes) }, async (served) => {
      const rounds = { rounds: 20, only: clusterWide, untilFound: true }; // whether one shows it depends on which thread answers when
      expect(await contradictions(served, rounds)).not.to.deep.equal([]);
    });
  });
});
