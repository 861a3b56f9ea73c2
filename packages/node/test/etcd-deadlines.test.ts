// @live
// Until when the gateways of nodes on etcd may answer (decision 105).
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { until } from '../../process/test/until.ts';
import { type LiveEtcd, liveEtcd } from '../../storage-etcd/test/live-etcd.ts';
import type { Node } from '../src/node.ts';
import { deadlinesIn } from '../src/threads/shared/deadline.ts';
import { OpenedNodes, stateOf } from './opened-nodes.ts';

/** Whether the deadlines for the lease, the active role and reads hold: on the active node, and on the standby. */
const served = [
  [true, true, false],
  [false, false, true],
];
/** For how long the active node may serve reads after a heartbeat. */
const holdMs = 3000;

describe('the deadlines of gateways on etcd', () => {
  let etcd: LiveEtcd;
  let nodes: OpenedNodes;
  let active: Node;
  let standby: Node;
  beforeEach(async () => {
    etcd = await liveEtcd();
    nodes = new OpenedNodes();
    const open = async (start: (config: Node['config']) => Promise<Node>): Promise<Node> => {
      const config = await nodes.config({ type: 'etcd', endpoints: [etcd.endpoint], prefix: 'test' });
      return start({ ...config, workers: 1 });
    };
    const first = await open((config) => nodes.started(config));
    const second = await open((config) => nodes.open(config));
    // The role moves when this process or etcd is not scheduled for seconds.
    await settled(first, second);
  });
  afterEach(async () => {
    etcd.resume();
    await nodes.end();
    await etcd.stop();
  });

  const holds = ({ gateways }: Node, name: keyof ReturnType<typeof deadlinesIn>, inMs = 0): boolean =>
    deadlinesIn(gateways.memory)[name].holds(process.hrtime.bigint() + BigInt(inMs) * 1_000_000n);
  const all = (node: Node): boolean[] => (['lease', 'active', 'read'] as const).map((name) => holds(node, name));

  /** Waits until one of the nodes serves as the active one, and the other as its standby. */
  const settled = (first: Node, second: Node): Promise<void> =>
    until(() => {
      [active, standby] = holds(first, 'lease') ? [first, second] : [second, first];
      return isDeepStrictEqual([all(active), all(standby)], served);
    });

  it('end soon: that of the active node with its heartbeats, that of a standby with its freshness', () => {
    expect(holds(active, 'lease', holdMs)).to.equal(false);
    expect(holds(standby, 'read', 2 * standby.config.cluster_heartbeat_interval)).to.equal(false);
  });

  it('hold on one node at a time for the active role, while it moves', async () => {
    let both = 0;
    const watch = setInterval(() => {
      if (holds(active, 'lease') && holds(standby, 'lease')) both += 1;
    });
    const before = active;
    // A standby that is not scheduled for seconds misses the time for which the role is left to it, so the role is given up again.
    await until(() => {
      if (holds(before, 'lease')) void before.stepDown();
      return holds(standby, 'lease');
    });
    await settled(standby, active);
    clearInterval(watch);
    expect(both).to.equal(0);
    expect(stateOf(standby)).to.equal('performance_standby');
  });

  it('are over at once when the node is sealed', async () => {
    standby.member?.barrier.seal();
    expect(all(standby)).to.deep.equal([false, false, false]);
    active.member?.barrier.seal();
    expect(all(active)).to.deep.equal([false, false, false]);
  });

  it('are over on all nodes when etcd does not answer, although the nodes run', async () => {
    etcd.pause();
    await until(() => ![...all(active), ...all(standby)].includes(true));
    expect([active.eligibility.readRole, standby.eligibility.readRole]).to.deep.equal([undefined, undefined]);
    etcd.resume();
    await until(() => holds(active, 'lease') || holds(standby, 'lease'));
  });
});
