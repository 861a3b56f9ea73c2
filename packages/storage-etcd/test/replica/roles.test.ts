import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import { until } from '../../../process/test/until.ts';
import { type Etcd, EtcdError } from '../../src/etcd.ts';
import { EtcdReplica } from '../../src/replica/etcd-replica.ts';
import { FakeEtcd } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';
import { type FakeNode, fakeNode, outcomeOf, put } from './fake-nodes.ts';

const isRegistered = ({ replica }: FakeNode): boolean => performance.now() < replica.registeredUntilMs;

type Options = Parameters<typeof fakeNode>[2];

/** Its requests reach etcd. While it is deaf, no answer comes back. */
class DeafEtcd extends FakeEtcd {
  isDeaf = false;

  constructor(server: FakeServer) {
    super(server);
    this.faults = { fateOf: () => (this.isDeaf ? 'answer lost' : 'answered'), holdsWatch: () => this.isDeaf };
  }

  override async range(request: Parameters<Etcd['range']>[0]): ReturnType<Etcd['range']> {
    return this.#heard(await super.range(request));
  }

  override async keepAlive(id: bigint): Promise<number> {
    return this.#heard(await super.keepAlive(id));
  }

  override async revokeLease(id: bigint): Promise<void> {
    return this.#heard(await super.revokeLease(id));
  }

  #heard<Answer>(answer: Answer): Answer {
    if (this.isDeaf) throw new EtcdError('unknown', 'no answer');
    return answer;
  }
}

describe('a node with its records in etcd', () => {
  const nodes: FakeNode[] = [];
  const open = async (server: FakeServer, nodeId: number, options: Options = {}): Promise<FakeNode> => {
    const node = await fakeNode(server, nodeId, options);
    nodes.push(node);
    return node;
  };
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.close();
  });

  it('gives the active role up when it may not lead, and takes it again when it may', async () => {
    const server = new FakeServer();
    const first = await open(server, 1);
    await first.replica.leads;
    first.replica.mayLead = false;
    expect(first.replica.status()).to.include({ role: 'follower', ready: false });
    expect(await outcomeOf(first.replica.commit(put('a', '1')))).to.equal('not_leader');
    const second = await open(server, 2);
    await second.replica.leads;
    first.replica.mayLead = true;
    second.replica.mayLead = false;
    await until(() => first.replica.status().ready);
    expect(await outcomeOf(first.replica.commit(put('a', '2')))).to.equal('committed');
  });

  it('leaves the role to another node when it yields', async () => {
    const server = new FakeServer();
    const first = await open(server, 1);
    await first.replica.leads;
    const second = await open(server, 2);
    first.replica.yieldFor(3_600_000);
    await second.replica.leads;
    await until(() => first.replica.status().leader === 2);
  });

  it('serves reads for a limited time after a heartbeat that etcd has committed, however long its lease is', async () => {
    let nowMs = 0;
    const node = await open(new FakeServer(), 1, { holdMs: 1000, clock: clockOf(() => nowMs) });
    await node.replica.leads;
    expect(node.replica.holdsLease()).to.equal(true);
    nowMs = 1001;
    expect(node.replica.holdsLease()).to.equal(false);
    expect(node.replica.status().ready).to.equal(true);
  });

  it('becomes active only when a predecessor, whose lease etcd ended without its knowledge, serves no reads', async () => {
    const server = new FakeServer();
    const first = await open(server, 1, { holdMs: 300 });
    await first.replica.leads;
    const second = await open(server, 2, { holdMs: 300 });
    first.etcd.faults = { cuts: () => true }; // no watch shows it
    for (const lease of [...server.leases.keys()]) server.endLease(lease);
    await second.replica.leads;
    expect(first.replica.status().role).to.equal('leader');
    expect(first.replica.holdsLease()).to.equal(false);
  });

  it('outlasts a predecessor also after another node that gave the role up without having served', async () => {
    const server = new FakeServer();
    const first = await open(server, 1, { holdMs: 300 });
    await first.replica.leads;
    const [second, third] = [await open(server, 2, { holdMs: 300 }), await open(server, 3, { holdMs: 300 })];
    third.replica.mayLead = false;
    first.etcd.faults = { cuts: () => true };
    for (const lease of [...server.leases.keys()]) server.endLease(lease);
    await until(() => second.replica.status().role === 'leader');
    second.replica.mayLead = false;
    third.replica.mayLead = true;
    await third.replica.leads;
    expect(first.replica.status().role).to.equal('leader');
    expect(first.replica.holdsLease()).to.equal(false);
  });

  it('gives the role up when its requests reach etcd, and no answer comes back', async () => {
    const server = new FakeServer();
    const deaf = new DeafEtcd(server);
    const options = { prefix: 'test', heartbeatMs: 20, leaseSeconds: 0.3, holdMs: 0, retryMs: 1, timeoutMs: 120_000 };
    const first = await EtcdReplica.open({ etcd: deaf, nodeId: 1, ...options });
    await first.leads;
    const second = await open(server, 2);
    deaf.isDeaf = true;
    await second.replica.leads;
    expect(first.status().role).to.equal('follower');
    expect(server.rows('test/m/active', undefined, undefined)).to.have.length(1);
    deaf.isDeaf = false;
    await until(() => first.status().leader === 2);
    deaf.close();
    await first.close();
  });

  it('becomes active at once when its predecessor has given the role up', async () => {
    const server = new FakeServer();
    const first = await open(server, 1, { holdMs: 3_600_000 });
    await first.replica.leads;
    const second = await open(server, 2, { holdMs: 3_600_000 });
    first.replica.mayLead = false;
    await second.replica.leads;
    expect(second.replica.holdsLease()).to.equal(true);
  });

  it('reports the end of its role to observers before etcd learns of it', async () => {
    const server = new FakeServer();
    const first = await open(server, 1);
    await first.replica.leads;
    const seen: object[] = [];
    const end = first.replica.observe(() => {
      const { leaseEndMs } = first.replica;
      seen.push({
        role: first.replica.status().role,
        leaseEndMs,
        keys: server.rows('test/m/active', undefined, undefined).length,
      });
    });
    first.replica.mayLead = false;
    expect(seen).to.deep.equal([{ role: 'follower', leaseEndMs: Number.NEGATIVE_INFINITY, keys: 1 }]);
    end();
  });

  it('is registered while the copy shows its record and its lease holds', async () => {
    const server = new FakeServer();
    const [first, second] = [await open(server, 1), await open(server, 2)];
    expect(isRegistered(second)).to.equal(false);
    second.replica.register(Buffer.from('at home'));
    await until(() => isRegistered(second) && first.replica.nodes.has(2));
    expect(Buffer.from(first.replica.nodes.get(2) ?? []).toString()).to.equal('at home');
    second.replica.register(Buffer.from('elsewhere'));
    expect(isRegistered(second)).to.equal(false);
    await until(() => isRegistered(second));
    await until(() => Buffer.from(first.replica.nodes.get(2) ?? []).toString() === 'elsewhere');
    second.replica.register(undefined);
    expect(isRegistered(second)).to.equal(false);
    await until(() => !first.replica.nodes.has(2));
  });

  it('is not registered any more when its lease has ended, whatever its clock says', async () => {
    const server = new FakeServer();
    const node = await open(server, 2);
    node.replica.register(Buffer.from('at home'));
    await until(() => isRegistered(node));
    for (const lease of [...server.leases.keys()]) server.endLease(lease);
    await until(() => !isRegistered(node));
  });

  it('reads the index of the newest commit of any node', async () => {
    const server = new FakeServer();
    const [first, second] = [await open(server, 1), await open(server, 2)];
    await first.replica.leads;
    const { index } = await first.replica.commit(put('a', '1'));
    expect(await second.replica.newestIndex()).to.equal(index);
    await until(() => second.replica.status().appliedIndex === index);
  });

  it('gives the role up as soon as a read shows that another node has it, or none', async () => {
    const server = new FakeServer();
    const node = await open(server, 1);
    await node.replica.leads;
    node.etcd.faults = { cuts: () => true }; // no watch shows it
    for (const lease of [...server.leases.keys()]) server.endLease(lease);
    await node.replica.newestIndex();
    expect(node.replica.status().ready).to.equal(false);
  });
});
