// Until when the gateways of nodes on etcd may answer (decision 105).
import { Deadline, type DeadlineName } from '@transitd/gateway';
import { expect } from 'chai';
import { until } from '../../process/test/until.ts';
import { type LiveEtcd, liveEtcd } from '../../storage-etcd/test/live-etcd.ts';
import type { Node } from '../src/node.ts';
import { OpenedNodes, stateOf } from './opened-nodes.ts';

/** For how long the active node may serve reads after a heartbeat. */
const holdMs = 3000;

describe('the deadlines of gateways on etcd', () => {
  let etcd: LiveEtcd;
  let nodes: OpenedNodes;
  let first: Node;
  let second: Node;
  beforeEach(async () => {
    etcd = await liveEtcd();
    nodes = new OpenedNodes();
    const open = async (start: (config: Node['config']) => Promise<Node>): Promise<Node> => {
      const config = await nodes.config({ type: 'etcd', endpoints: [etcd.endpoint], prefix: 'test' });
      return start({ ...config, workers: 1 });
    };
    first = await open((config) => nodes.started(config));
    second = await open((config) => nodes.open(config));
    await until(() => holds(first, 'lease') && holds(second, 'read'));
  });
  afterEach(async () => {
    etcd.resume();
    await nodes.end();
    await etcd.stop();
  });

  const deadline = ({ gateways }: Node, name: DeadlineName): Deadline => {
    if (gateways === undefined) throw new Error('no gateways');
    return new Deadline(gateways.memory, name);
  };
  const holds = (node: Node, name: DeadlineName, inMs = 0): boolean =>
    deadline(node, name).holds(process.hrtime.bigint() + BigInt(inMs) * 1_000_000n);
  const all = (node: Node): boolean[] => (['lease', 'active', 'read'] as const).map((name) => holds(node, name));

  it('end soon: that of the active node with its heartbeats, that of a standby with its freshness', () => {
    expect([all(first), all(second)]).to.deep.equal([
      [true, true, false],
      [false, false, true],
    ]);
    expect(holds(first, 'lease', holdMs)).to.equal(false);
    expect(holds(second, 'read', 2 * second.config.cluster_heartbeat_interval)).to.equal(false);
  });

  it('hold on one node at a time for the active role, while it moves', async () => {
    let both = 0;
    const watch = setInterval(() => {
      if (holds(first, 'lease') && holds(second, 'lease')) both += 1;
    });
    void first.stepDown();
    await until(() => holds(second, 'lease'));
    clearInterval(watch);
    expect(both).to.equal(0);
    await until(() => stateOf(first) === 'performance_standby' && holds(first, 'read'));
    expect(holds(first, 'lease')).to.equal(false);
  });

  it('are over at once when the node is sealed', async () => {
    second.store?.barrier.seal();
    expect(all(second)).to.deep.equal([false, false, false]);
    first.store?.barrier.seal();
    expect(all(first)).to.deep.equal([false, false, false]);
  });

  it('are over on all nodes when etcd does not answer, although the nodes run', async () => {
    etcd.pause();
    await until(() => ![...all(first), ...all(second)].includes(true));
    expect([first.eligibility.readRole, second.eligibility.readRole]).to.deep.equal([undefined, undefined]);
    etcd.resume();
    await until(() => holds(first, 'lease') || holds(second, 'lease'));
  });
});
