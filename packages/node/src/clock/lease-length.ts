import type { Config } from '@transitd/configuration';

/** Time after which etcd ends the role of a silent active node, and the registration of a silent node. */
export const etcdLeaseSeconds = 5;

/** Returns the length of a lease, in milliseconds: it was requested at most this long before it ends. */
export const leaseMsOf = ({ storage, raft }: Pick<Config, 'storage' | 'raft'>): number =>
  storage.type === 'etcd' ? etcdLeaseSeconds * 1000 : raft.lease;
