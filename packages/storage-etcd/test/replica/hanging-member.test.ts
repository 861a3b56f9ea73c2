import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { anyEndpoint } from '../../src/client/any-endpoint.ts';
import { EtcdReplica } from '../../src/replica/etcd-replica.ts';
import { FakeEtcd } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';
import { outcomeOf, put } from './fake-nodes.ts';

describe('a member of etcd that hangs', () => {
  it('is left by the active node and by a standby as soon as they read, and neither loses its role', async () => {
    const server = new FakeServer();
    const nodes = await Promise.all(
      [1, 2].map(async (nodeId) => {
        const members = [new FakeEtcd(server), new FakeEtcd(server)] as const;
        const etcd = anyEndpoint(members);
        // Nothing but the reads finds the fault: no call and no watch times out.
        const options = { heartbeatMs: 3_600_000, leaseSeconds: 600, holdMs: 3_600_000, timeoutMs: 3_600_000, retryMs: 1 };
        const replica = await EtcdReplica.open({ ...options, etcd, prefix: 'test', nodeId, mayLead: nodeId === 1 });
        return { replica, members, etcd };
      }),
    );
    const [active, standby] = nodes;
    if (active === undefined || standby === undefined) throw new Error('there are two nodes');
    await active.replica.leads;
    expect(await outcomeOf(active.replica.commit(put('a', '1')))).to.equal('committed');
    for (const { members } of nodes) members[0].isFrozen = true;
    await Promise.all(nodes.map(({ replica }) => replica.newestIndex()));
    expect(await outcomeOf(active.replica.commit(put('a', '2')))).to.equal('committed');
    await standby.replica.fresh();
    expect((await standby.replica.get('a'))?.value.toString()).to.equal('2');
    expect(active.replica.holdsLease()).to.equal(true);
    for (const { members } of nodes) members[0].isFrozen = false;
    for (const { replica, etcd } of nodes) {
      await replica.close();
      etcd.close();
    }
  });

  it('is left by the active node also without reads, as its heartbeats go elsewhere', async () => {
    const server = new FakeServer();
    const members = [new FakeEtcd(server), new FakeEtcd(server)] as const;
    const etcd = anyEndpoint(members);
    const replica = await EtcdReplica.open({ etcd, prefix: 'test', nodeId: 1, heartbeatMs: 20, retryMs: 1 });
    await replica.leads;
    const beat = (): number => server.rows('test/m/heartbeat', undefined)[0]?.modRevision ?? 0;
    members[0].isFrozen = true;
    const before = beat();
    await until(() => beat() > before + 3);
    members[0].isFrozen = false;
    await replica.close();
    etcd.close();
  });
});
