import { expect } from 'chai';
import { Registration } from '../../src/replica/registration.ts';
import { FakeEtcd } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';
import { until } from './fake-nodes.ts';

describe('the registration of a node', () => {
  it('counts only for a copy that contains the present record, and so every commit from before it', async () => {
    const server = new FakeServer();
    const etcd = new FakeEtcd(server);
    const registration = new Registration({
      ...{ etcd, key: 'n/2', leaseSeconds: 10, retryMs: 1 },
      ...{ now: () => performance.now(), onFault: () => undefined },
    });
    registration.set(Buffer.from('at home'));
    await until(() => registration.isHeldAt(server.revision));
    const before = server.revision;
    registration.set(Buffer.from('elsewhere')); // the first record is deleted, then the second one is written
    await until(() => registration.isHeldAt(server.revision));
    expect(server.revision).to.be.above(before);
    expect(registration.isHeldAt(before)).to.equal(false);
    expect(registration.isHeldAt(server.revision - 1)).to.equal(false);
    await registration.close();
    expect(registration.isHeldAt(server.revision)).to.equal(false);
  });

  it('survives calls that fail while its lease holds', async () => {
    const server = new FakeServer();
    const etcd = new FakeEtcd(server);
    let faults = 0;
    const registration = new Registration({
      ...{ etcd, key: 'n/2', leaseSeconds: 1, retryMs: 1 },
      ...{ now: () => 0, onFault: () => void faults++ },
    });
    registration.set(Buffer.from('at home'));
    await until(() => registration.isHeldAt(server.revision));
    const { revision } = server;
    etcd.isCutOff = true;
    await until(() => faults >= 3);
    expect(registration.isHeldAt(revision)).to.equal(true);
    etcd.isCutOff = false;
    await registration.close();
    expect(server.leases.size).to.equal(0);
  });
});
