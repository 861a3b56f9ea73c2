// Disaster-recovery replication of one node, and the records that it keeps.

export { acknowledgePath, unreachedSecondaries } from './node/acknowledge-setting.ts';
export { ClusterReplication } from './node/cluster-replication.ts';
export type { KeptDivergence, KeptPromotion } from './node/kept-reports.ts';
export { isOperationToken } from './node/operation-tokens.ts';
export { ReplicationRole } from './node/replication-role.ts';
export { successionKeyPath } from './node/succession-key.ts';
export { ReplicationError } from './replication-error.ts';
export { acknowledgeMsMax, acknowledgeMsMin } from './roles/acknowledgement.ts';
export { type Fence, refusalWithoutPort } from './roles/write-fence.ts';
export { localPrefixes } from './scope.ts';
