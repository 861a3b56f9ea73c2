import { parseConfig } from '@transitd/configuration';
import { freshForIntervals } from '@transitd/health';
import { outlastedBy } from '@transitd/raft-core';
import { expect } from 'chai';
import { etcdLeaseSeconds } from '../../src/clock/lease-clock.ts';

/** Returns the longest interval that the configuration accepts with etcd, in whole milliseconds. */
function longestIntervalMs(): number {
  const isAccepted = (ms: number): boolean => {
    try {
      parseConfig({
        node_id: 'n1',
        data_dir: '/var/lib/transitd',
        listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
        cluster_addr: '127.0.0.1:8201',
        cluster_heartbeat_interval: `${ms}ms`,
        storage: { type: 'etcd', endpoints: ['https://etcd-1.example:2379'] },
      });
      return true;
    } catch {
      return false;
    }
  };
  let [accepted, refused] = [1_000, 60_001];
  expect([isAccepted(accepted), isAccepted(refused)]).to.deep.equal([true, false]);
  while (refused - accepted > 1) {
    const middle = Math.floor((accepted + refused) / 2);
    if (isAccepted(middle)) accepted = middle;
    else refused = middle;
  }
  return accepted;
}

describe('the lease of a node in etcd', () => {
  it('ends by any clock after the node has stopped serving reads, with every interval that the configuration accepts', () => {
    expect(freshForIntervals * longestIntervalMs()).to.be.at.most(outlastedBy(etcdLeaseSeconds * 1000));
  });
});
