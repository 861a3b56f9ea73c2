import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { storeSuite } from '../../../storage-fsm/test/store/store.suite.ts';
import { connectEtcd } from '../../src/client/connect-etcd.ts';
import { type Etcd, EtcdError } from '../../src/etcd.ts';
import { EtcdReplica, type EtcdReplicaOptions } from '../../src/replica/etcd-replica.ts';
import { type LiveEtcd, liveEtcd } from '../live-etcd.ts';
import { Auth, KV } from '../wire/admin_pb.ts';
import { outcomeOf, put } from './fake-nodes.ts';

/** No heartbeat between two commits, so that their revisions are neighbors. */
const quiet = { heartbeatMs: 3_600_000, leaseSeconds: 600, timeoutMs: 120_000 };

describe('a replica over a real etcd', () => {
  let live: LiveEtcd;
  let opened = 0;
  before(async () => {
    live = await liveEtcd();
  });
  after(() => live.stop());

  storeSuite('a replica over etcd', async () => {
    const etcd = connectEtcd({ endpoint: live.endpoint, timeoutMs: 60_000 });
    opened += 1;
    const replica = await EtcdReplica.open({ etcd, prefix: `suite/${opened}`, nodeId: 1, ...quiet });
    await replica.leads;
    const close = async (): Promise<void> => {
      await replica.close();
      etcd.close();
    };
    return { replica, close };
  });

  describe('with faults', () => {
    const opens: { readonly etcd: Etcd; readonly replica: EtcdReplica }[] = [];
    let prefixes = 0;
    const open = async (nodeId: number, options: Partial<EtcdReplicaOptions> = {}) => {
      const etcd = connectEtcd({ endpoint: live.endpoint, timeoutMs: 60_000 });
      const replica = await EtcdReplica.open({
        etcd,
        prefix: `faults/${prefixes}`,
        nodeId,
        timeoutMs: 60_000,
        retryMs: 50,
        ...options,
      });
      opens.push({ etcd, replica });
      return { etcd, replica };
    };
    /** Commits as soon as the node is active: while this process is not scheduled, its lease may end. */
    const committed = async (replica: EtcdReplica, path: string, value: string): Promise<void> => {
      for (let outcome = ''; outcome !== 'committed'; ) {
        await until(() => replica.status().ready);
        outcome = await outcomeOf(replica.commit(put(path, value)));
        expect(outcome).to.be.oneOf(['committed', 'not_leader']);
      }
    };
    const textAt = async (replica: EtcdReplica, path: string): Promise<string | undefined> => {
      const record = await replica.get(path);
      return record && Buffer.from(record.value).toString();
    };
    beforeEach(() => {
      prefixes += 1;
    });
    afterEach(async () => {
      for (const { etcd, replica } of opens.splice(0)) {
        etcd.close();
        await replica.close();
      }
    });

    it('shows every node the commits of the active one, and the next active node continues', async () => {
      const first = await open(1);
      await first.replica.leads;
      const second = await open(2);
      expect(await outcomeOf(second.replica.commit(put('a', 'x')))).to.equal('not_leader');
      const writes = Array.from({ length: 300 }, (_, i) => ({ path: `many/${i}`, value: Buffer.alloc(10_000, i) }));
      const { index } = await first.replica.commit({ conditions: [], writes });
      await second.replica.fresh();
      expect((await second.replica.get('many/299'))?.revision).to.equal(index);
      expect(Buffer.from((await second.replica.get('many/44'))?.value ?? []).equals(Buffer.alloc(10_000, 44))).to.equal(true);
      await first.replica.close();
      await second.replica.leads;
      const condition = { path: 'many/7', revision: index };
      const deleted = { conditions: [condition], writes: [{ path: 'many/7', value: null }] };
      expect(await outcomeOf(second.replica.commit(deleted))).to.equal('committed');
      expect((await second.replica.paths({ prefix: 'many/', limit: 1000 })).paths).to.have.length(299);
    });

    it('replaces an active node that has fallen silent, whose writes then fail', async () => {
      const silent = await open(1, { leaseSeconds: 2 });
      await committed(silent.replica, 'a', '1');
      const next = await open(2, { leaseSeconds: 2 });
      silent.etcd.close();
      await committed(next.replica, 'a', '2');
      expect(silent.replica.holdsLease()).to.equal(false);
      expect(await outcomeOf(silent.replica.commit(put('a', '3')))).to.not.equal('committed');
      expect(await textAt(next.replica, 'a')).to.equal('2');
    });

    it('loses no acknowledged commit when etcd is killed, and goes on when it is back', async () => {
      const { replica } = await open(1);
      await replica.leads;
      let acknowledged = 0;
      let isKilled = false;
      const writing = (async () => {
        for (let number = 1; !isKilled; number++)
          if ((await outcomeOf(replica.commit(put('a', String(number))))) === 'committed') acknowledged = number;
      })();
      await until(() => acknowledged > 20);
      await live.kill();
      isKilled = true;
      await live.start();
      await writing;
      await replica.fresh();
      expect(Number(await textAt(replica, 'a'))).to.be.at.least(acknowledged);
      for (let outcome = ''; outcome !== 'committed'; ) outcome = await outcomeOf(replica.commit(put('a', 'after')));
      const other = await open(2);
      expect(await textAt(other.replica, 'a')).to.equal('after');
    });

    it('reads the state again when etcd has compacted what a watch needs', async () => {
      const reports: Error[] = [];
      const { etcd, replica } = await open(1);
      await replica.leads;
      await replica.commit(put('a', '1'));
      const slow = connectEtcd({ endpoint: live.endpoint });
      let isHeld = false;
      const held: Etcd = {
        ...slow,
        async *watch(request, signal) {
          for await (const message of slow.watch(request, signal)) {
            if (isHeld) throw new EtcdError('unknown', 'cut by the test');
            yield message;
          }
        },
        range: (request) => (isHeld ? Promise.reject(new EtcdError('unknown', 'cut by the test')) : slow.range(request)),
      };
      const behind = await EtcdReplica.open({
        etcd: held,
        prefix: `faults/${prefixes}`,
        nodeId: 2,
        retryMs: 50,
        onFault: (error) => reports.push(error),
      });
      opens.push({ etcd: slow, replica: behind });
      const notified: unknown[] = [];
      behind.watch('', (changes) => notified.push(changes));
      isHeld = true;
      for (const value of ['2', '3']) await replica.commit(put('a', value));
      await until(() => reports.length > 0);
      const { revision } = await etcd.range({ key: 'any' });
      await createClient(KV, createGrpcTransport({ baseUrl: live.endpoint })).compact({ revision: BigInt(revision) });
      isHeld = false;
      await behind.fresh();
      expect(await textAt(behind, 'a')).to.equal('3');
      expect(notified).to.deep.equal(['everything']);
    });

    it('knows what etcd says of revisions that it no longer has, or not yet', async () => {
      const { etcd } = await open(1);
      const { revision } = await etcd.range({ key: 'any' });
      await createClient(KV, createGrpcTransport({ baseUrl: live.endpoint })).compact({ revision: BigInt(revision) });
      for (const wrong of [1, revision + 1000]) {
        const error = await etcd.range({ key: 'any', revision: wrong }).catch((reason: unknown) => reason);
        expect(error).to.be.instanceOf(EtcdError).with.property('kind', 'compacted');
      }
    });

    it('knows that a transaction above the limits was refused', async () => {
      const { etcd } = await open(1);
      const operations = Array.from({ length: 129 }, (_, i) => ({ kind: 'range' as const, key: String(i) }));
      const large = { kind: 'put' as const, key: 'large', value: Buffer.alloc(1_700_000) };
      for (const success of [operations, [large]]) {
        const error = await etcd.txn({ compares: [], success, failure: [] }).catch((reason: unknown) => reason);
        expect(error).to.be.instanceOf(EtcdError).with.property('kind', 'refused');
      }
    });
  });
});

describe('an etcd with users', () => {
  it('serves a replica that has the password, and no other', async () => {
    const live = await liveEtcd();
    try {
      const admin = createClient(Auth, createGrpcTransport({ baseUrl: live.endpoint }));
      await admin.userAdd({ name: 'root', password: 'correct' });
      await admin.userGrantRole({ user: 'root', role: 'root' });
      await admin.authEnable({});
      const openAs = async (user?: { readonly name: string; readonly password: string }) => {
        const etcd = connectEtcd({ endpoint: live.endpoint, ...(user && { user }) });
        const replica = await EtcdReplica.open({ etcd, prefix: 'p', nodeId: 1 }).catch((reason: unknown) => {
          etcd.close();
          throw reason;
        });
        return { etcd, replica };
      };
      for (const user of [undefined, { name: 'root', password: 'wrong' }]) {
        const error = await openAs(user).catch((reason: unknown) => reason);
        expect(error).to.be.instanceOf(EtcdError).with.property('kind', 'refused');
      }
      const { etcd, replica } = await openAs({ name: 'root', password: 'correct' });
      await replica.leads;
      expect(await outcomeOf(replica.commit(put('a', '1')))).to.equal('committed');
      await replica.close();
      etcd.close();
    } finally {
      await live.stop();
    }
  });
});
