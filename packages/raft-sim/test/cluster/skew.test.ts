import { expect } from 'chai';
import { Trace } from '../../src/cluster/checks/trace.ts';
import { configOf, type SimConfig } from '../../src/cluster/config/config.ts';
import { Cluster } from '../../src/cluster/world/cluster.ts';

const quiet: SimConfig = {
  ...configOf(1, 'driver', 0),
  nodes: 3,
  clients: 2,
  skew: 2,
  clockSkew: false,
  network: { drop: 0, duplicate: 0, heavyTail: 0, replay: 0, corrupt: 0, reorder: false, delayMsMax: 5, codec: false },
  disk: { syncMsMax: 1, slow: 0, torn: false, slotRot: 0 },
  schedule: [],
};

/** Three nodes without faults, each running a program with that newest wire version, which reads the previous one too. */
function clusterOf(versions: readonly number[]) {
  const cluster = new Cluster(quiet, new Trace());
  for (const [position, member] of cluster.members.entries()) member.version = versions[position] ?? 1;
  cluster.clients.start();
  const commits = () => cluster.members.map(({ observed }) => observed.status?.commitIndex ?? 0);
  const met = (event: Parameters<Cluster['coverage']['met']>[0]) => cluster.coverage.counts().get(event) ?? 0;
  const until = (condition: () => boolean): void => {
    for (let events = 0; !condition(); events++) {
      expect(events, 'the awaited condition holds in time').to.be.below(200_000);
      cluster.step();
    }
  };
  return { cluster, commits, met, until };
}

describe('nodes of different wire versions', () => {
  it('one version apart talk in the older version, so a cluster is upgraded node by node', () => {
    const { commits, met, until } = clusterOf([1, 2, 1]);
    until(() => commits().every((index) => index >= 20));
    expect(met('frame of an older version read')).to.be.above(0);
    expect(met('frame of another version dropped')).to.equal(0);
  });

  it('two versions apart do not hear each other: the majority continues, and the other follows once it is upgraded', () => {
    const { cluster, commits, met, until } = clusterOf([1, 1, 3]);
    until(() => (commits()[0] ?? 0) >= 20 && met('frame of another version dropped') >= 20);
    expect(commits()[2]).to.equal(0);
    expect(cluster.leader?.id).to.be.within(1, 2);
    const term = cluster.leader?.observed.status?.term;
    const [, , stranger] = cluster.members;
    if (stranger !== undefined) stranger.version = 2;
    until(() => (commits()[2] ?? 0) >= 20);
    expect(cluster.leader?.observed.status?.term, 'its return deposes nobody').to.equal(term);
  });

  it('without a majority that understands each other have no leader, and never two', () => {
    const { cluster, commits } = clusterOf([1, 3, 5]);
    while (cluster.clock.now() < 60_000) cluster.step();
    expect(cluster.leader).to.equal(undefined);
    expect(commits()).to.deep.equal([0, 0, 0]);
  });

  it('drop a message of an unknown type, and continue', () => {
    const { commits, met, until } = clusterOf([2, 1, 1]);
    until(() => met('message of an unknown type dropped') >= 5);
    const [before = 0] = commits();
    until(() => commits().every((index) => index > before));
  });
});
