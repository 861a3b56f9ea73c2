// @live
// Checks the answers of a node whose machine resumes after a suspension in which the monotonic clock stood still.
import { expect } from 'chai';
import { processMs } from '../process/live-server.ts';
import { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { StoppedClock } from './harness/stopped-clock.ts';
import { until } from './harness/until.ts';

/** Sent while the node is suspended, so that it reads them when it resumes. */
const requests = 40;
const withinMs = 20_000;

describe('a node whose machine was suspended', function () {
  this.timeout(processMs);
  let clock: StoppedClock;
  let cluster: LiveCluster | undefined;

  before(() => {
    clock = new StoppedClock();
  });
  afterEach(() => cluster?.end());
  after(() => clock.remove());

  const formed = async (suspended: string): Promise<LiveCluster> => {
    cluster = await LiveCluster.formed({
      env: (name) => (name === suspended ? clock.env : {}),
      workers: 1,
      config: { raft: { election_timeout: '3s' } },
    });
    return cluster;
  };

  /** Returns the statuses of requests with a token that is revoked while this partitioned node is suspended. */
  async function codesAfter(on: LiveCluster, node: LiveNode, revoker: () => Promise<LiveNode>): Promise<readonly number[]> {
    const made = await on.askWhenLed(node, 'POST', 'auth/token/create', { policies: ['default'] });
    const token = made.string('auth.client_token');
    const look = (): Promise<number> =>
      node.ask('GET', 'auth/token/lookup-self', { token, withinMs }).then(
        ({ status }) => status,
        () => 0,
      );
    await until(`${node.name} answers by that token`, async () => (await look()) === 200);
    on.isolate(node, 'blackhole');
    const pausedMs = performance.now();
    node.pause();
    const answers = Array.from({ length: requests }, look);
    expect((await on.askWhenLed(await revoker(), 'POST', 'auth/token/revoke', { token })).status).to.equal(204);
    clock.stoodStill(performance.now() - pausedMs);
    node.resume();
    const codes = await Promise.all(answers);
    on.heal();
    await until(`${node.name} serves again`, async () => [200, 473].includes((await node.health())?.code ?? 0));
    await until('the token is refused', async () => {
      const status = await look();
      if (status === 200) throw new Error(`${node.name} answers by a token that was revoked`);
      return status === 403;
    });
    await until('the jump is logged', () => node.log.includes('a clock of this machine jumped against the monotonic clock'));
    return codes;
  }

  it('answers no request, as a standby, with a token that was revoked meanwhile', async () => {
    const on = await formed('n2');
    const codes = await codesAfter(on, on.node(2), () => on.leader(on.others(on.node(2))));
    expect(codes.filter((status) => status === 200)).to.deep.equal([]);
  });

  it('answers no request, as the former active node, with a token that was revoked meanwhile', async () => {
    const on = await formed('n1');
    expect((await on.settled()).name).to.equal('n1');
    const codes = await codesAfter(on, on.node(1), () => on.leader(on.others(on.node(1))));
    expect(codes.filter((status) => status === 200)).to.deep.equal([]);
  });
});

describe('a cluster without leader leases', function () {
  this.timeout(processMs);
  let cluster: LiveCluster | undefined;
  after(() => cluster?.end());

  it('serves reads after the active node has asked a quorum for each', async () => {
    cluster = await LiveCluster.formed({ workers: 1, config: { raft: { lease: 0 } } });
    const leader = await cluster.settled();
    for (const node of cluster.nodes) {
      const name = `transit/keys/of-${node.name}`;
      expect((await cluster.askWhenLed(node, 'POST', name, {})).status).to.be.within(200, 204);
      expect((await cluster.askWhenLed(node, 'GET', name)).status).to.equal(200);
    }
    // Without a lease, the active node could not answer while it is partitioned.
    cluster.isolate(leader, 'blackhole');
    const alone = await cluster.ask(leader, 'GET', `transit/keys/of-${leader.name}`).then(({ status }) => status);
    expect(alone).to.equal(503);
  });
});
