import { systemClock } from '@transitd/process';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import { until } from '../../../process/test/until.ts';
import { Registration } from '../../src/replica/registration.ts';
import { FakeEtcd } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';

const never = Number.NEGATIVE_INFINITY;
const isHeldAt = (registration: Registration, revision: number): boolean => registration.heldUntilMs(revision) > never;

/** Knows whether the node has revoked a lease. */
class RevocationWatch extends FakeEtcd {
  isRevoked = false;

  override revokeLease(id: bigint): Promise<void> {
    this.isRevoked = true;
    return super.revokeLease(id);
  }
}

describe('the registration of a node', () => {
  it('counts only for a copy that contains the present record, and so every commit from before it', async () => {
    const server = new FakeServer();
    const etcd = new FakeEtcd(server);
    const registration = new Registration({
      ...{ etcd, key: 'n/2', leaseSeconds: 10, retryMs: 1 },
      ...{ clock: systemClock, onFault: () => undefined, onEnded: () => undefined },
    });
    registration.set(Buffer.from('at home'));
    await until(() => isHeldAt(registration, server.revision));
    const before = server.revision;
    registration.set(Buffer.from('elsewhere')); // the first record is deleted, then the second one is written
    await until(() => isHeldAt(registration, server.revision));
    expect(server.revision).to.be.above(before);
    expect(isHeldAt(registration, before)).to.equal(false);
    expect(isHeldAt(registration, server.revision - 1)).to.equal(false);
    await registration.close();
    expect(isHeldAt(registration, server.revision)).to.equal(false);
  });

  it('survives calls that fail while its lease holds', async () => {
    const server = new FakeServer();
    const etcd = new FakeEtcd(server);
    let faults = 0;
    const registration = new Registration({
      ...{ etcd, key: 'n/2', leaseSeconds: 1, retryMs: 1 },
      ...{ clock: clockOf(() => 0), onFault: () => void faults++, onEnded: () => undefined },
    });
    registration.set(Buffer.from('at home'));
    await until(() => isHeldAt(registration, server.revision));
    const { revision } = server;
    etcd.isCutOff = true;
    await until(() => faults >= 3);
    expect(isHeldAt(registration, revision)).to.equal(true);
    etcd.isCutOff = false;
    await registration.close();
    expect(server.leases.size).to.equal(0);
  });

  for (const { how, end } of [
    { how: 'another record takes its place', end: (registration: Registration) => registration.set(Buffer.from('elsewhere')) },
    { how: 'it is deleted', end: (registration: Registration) => registration.set(undefined) },
    { how: 'the node stops', end: (registration: Registration) => void registration.close() },
    {
      how: 'etcd has ended its lease',
      end: (_: Registration, server: FakeServer) => server.endLease([...server.leases.keys()][0] ?? 0n),
    },
  ])
    it(`reports that its record counts no longer before it takes that back in etcd, when ${how}`, async () => {
      const server = new FakeServer();
      const etcd = new RevocationWatch(server);
      const revokedAtEnd: boolean[] = [];
      const registration = new Registration({
        ...{ etcd, key: 'n/2', leaseSeconds: 0.01, retryMs: 1, clock: clockOf(() => 0), onFault: () => undefined },
        onEnded: () => {
          expect(isHeldAt(registration, server.revision)).to.equal(false);
          revokedAtEnd.push(etcd.isRevoked);
        },
      });
      registration.set(Buffer.from('at home'));
      await until(() => isHeldAt(registration, server.revision));
      revokedAtEnd.length = 0;
      end(registration, server);
      await until(() => etcd.isRevoked);
      expect(revokedAtEnd[0]).to.equal(false);
      await registration.close();
    });
});
