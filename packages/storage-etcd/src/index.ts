export { anyEndpoint } from './client/any-endpoint.ts';
export type { EtcdConnection } from './client/connect-etcd.ts';
export { connectEtcd } from './client/load-client.ts';
export { CopyFault } from './copy/copy.ts';
export * from './etcd.ts';
export { EtcdReplica, type EtcdReplicaOptions } from './replica/etcd-replica.ts';
export { type InspectedCluster, inspectCluster, positionOfCluster } from './replica/inspect.ts';
export type { ReplicaState } from './replica/replica-state.ts';
