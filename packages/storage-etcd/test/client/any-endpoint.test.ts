import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { anyEndpoint } from '../../src/client/any-endpoint.ts';
import { EtcdError, type EtcdErrorKind } from '../../src/etcd.ts';
import { EtcdReplica } from '../../src/replica/etcd-replica.ts';
import { FakeEtcd } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';

const kindOf = (call: Promise<unknown>): Promise<EtcdErrorKind | 'answered'> =>
  call.then(
    () => 'answered' as const,
    (error: unknown) => {
      if (error instanceof EtcdError) return error.kind;
      throw error;
    },
  );

describe('several endpoints', () => {
  const put = (key: string) => ({
    compares: [],
    success: [{ kind: 'put' as const, key, value: Buffer.from('x') }],
    failure: [],
  });

  it('are used one after the other: a call without an answer is not repeated, the next one goes elsewhere', async () => {
    const server = new FakeServer();
    const members = [new FakeEtcd(server), new FakeEtcd(server)] as const;
    const etcd = anyEndpoint(members);
    members[0].isCutOff = true;
    expect(await kindOf(etcd.txn(put('a')))).to.equal('unknown');
    expect(server.rows('a', undefined)).to.deep.equal([]);
    expect(await kindOf(etcd.txn(put('b')))).to.equal('answered');
    [members[0].isCutOff, members[1].isCutOff] = [false, true];
    expect(await kindOf(etcd.txn(put('c')))).to.equal('unknown');
    expect(await kindOf(etcd.txn(put('d')))).to.equal('answered');
  });

  it('are asked one after the other for a read, and a replica opens although the first ones do not answer', async () => {
    const server = new FakeServer();
    const members = [new FakeEtcd(server), new FakeEtcd(server), new FakeEtcd(server)] as const;
    const etcd = anyEndpoint(members);
    [members[0].isCutOff, members[1].isCutOff] = [true, true];
    const replica = await EtcdReplica.open({ etcd, prefix: 'test', nodeId: 1, mayLead: false });
    expect(replica.status().clusterId).to.not.equal('');
    await replica.close();
    members[2].isCutOff = true;
    expect(await kindOf(etcd.range({ key: 'a' }))).to.equal('unknown');
  });

  it('answer small reads and renewals of leases also when the present one fails or hangs, and are changed by that', async () => {
    for (const fault of ['isCutOff', 'isFrozen'] as const) {
      const server = new FakeServer();
      const members = [new FakeEtcd(server), new FakeEtcd(server)] as const;
      const etcd = anyEndpoint(members);
      const { id } = await etcd.grantLease(5);
      members[0][fault] = true;
      expect((await etcd.range({ key: 'b' })).rows).to.deep.equal([]);
      expect(await kindOf(etcd.txn(put('b')))).to.equal('answered');
      [members[0][fault], members[1][fault]] = [false, true];
      expect(await etcd.keepAlive(id)).to.equal(10);
      expect(await kindOf(etcd.txn(put('c')))).to.equal('answered');
      members[1][fault] = false;
    }
  });

  it('are tried once each for a read, which then says why none has answered', async () => {
    const server = new FakeServer();
    const members = [new FakeEtcd(server), new FakeEtcd(server)] as const;
    const etcd = anyEndpoint(members);
    for (const member of members) member.isCutOff = true;
    expect(await kindOf(etcd.range({ key: 'b' }))).to.equal('unknown');
  });

  it('are changed for a watch too, when a read has found that its member hangs', async () => {
    const server = new FakeServer();
    const members = [new FakeEtcd(server), new FakeEtcd(server)] as const;
    const etcd = anyEndpoint(members);
    const end = new AbortController();
    const watched = async (): Promise<void> => {
      for await (const _ of etcd.watch({ key: 'a', end: 'b', startRevision: 1 }, end.signal)) members[0].isFrozen = true;
    };
    const outcome = kindOf(watched());
    await until(() => members[0].isFrozen);
    await etcd.range({ key: 'a' });
    expect(await outcome).to.equal('unknown');
    members[0].isFrozen = false;
  });

  it('are not left after a refusal', async () => {
    const server = new FakeServer();
    const first = new FakeEtcd(server);
    let calls = 0;
    const refusing = Object.assign(first, {
      range: () => {
        calls += 1;
        return Promise.reject(new EtcdError('refused', 'no'));
      },
    });
    const etcd = anyEndpoint([refusing, new FakeEtcd(server)]);
    for (const _ of [1, 2]) expect(await kindOf(etcd.range({ key: 'a' }))).to.equal('refused');
    expect(calls).to.equal(2);
  });

  it('are changed when a watch breaks', async () => {
    const server = new FakeServer();
    const members = [new FakeEtcd(server), new FakeEtcd(server)] as const;
    const etcd = anyEndpoint(members);
    members[0].isCutOff = true;
    const first = async (): Promise<string | undefined> => {
      for await (const { kind } of etcd.watch({ key: 'a', end: 'b', startRevision: 1 }, AbortSignal.timeout(60_000))) return kind;
      return undefined;
    };
    expect(await kindOf(first())).to.equal('unknown');
    expect(await first()).to.equal('created');
  });
});
