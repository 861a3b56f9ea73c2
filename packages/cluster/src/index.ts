// The cluster code of one node, and the interfaces of the node and its storage.

export { Cluster } from './cluster.ts';
export type { Peers } from './peers.ts';
export { type ClusterHost, ForwardedRequests, type NodeRole, type ReportSource } from './ports/cluster-host.ts';
export { MemberEvents } from './ports/member-events.ts';
export { type ReadRole, readRoleOf } from './ports/read-role.ts';
export type { Engine, MembershipPorts, OutsideEngine, Storage } from './ports/storage-port.ts';
export { RaftConnections } from './raft-connections.ts';
export { clusterListenAddress } from './transport/listen-address.ts';

// Membership: identities, the authority that signs them, and the configuration that lists them.

export { authorityPath, type ClusterAuthority, makeRequest, readAuthority } from './membership/authority.ts';
export { fingerprintOf } from './membership/certificate.ts';
export { overtakenFile, recordExclusion, removalFile } from './membership/exclusion.ts';
export { writeIdentity } from './membership/identity.ts';
export { decodeMembership, encodeMembership } from './membership/membership.ts';
export { replaceFile } from './membership/replace-file.ts';

// Joins: the joiner's side and the leader's side.

export { JoinClient, type JoinedCluster } from './join/join-client.ts';
export { JoinDesk } from './join/join-desk.ts';
export { sendByHttp } from './join/join-http.ts';
export { isLeaderAddress, joinAnswerSchema, joinRequestSchema } from './join/join-messages.ts';
export { ClusterError } from './refusals/cluster-error.ts';

// Operation: changes of the members, autopilot, rotation of the authority.

export type { ServerState } from './maintenance/autopilot-state.ts';
export { type ClusterLevels, FeatureLevelControl } from './maintenance/feature-level-control.ts';
export { serverIdOf } from './maintenance/member-changes.ts';
export { RaftLevels } from './maintenance/raft-levels.ts';

// Disaster-recovery replication: the primary's cluster port, and the secondary's connection to it.

export { activate } from './replication/activation-client.ts';
export { type ActivationToken, makeTokenKey, readActivationToken } from './replication/activation-token.ts';
export {
  credentialPath,
  decodeCredential,
  encodeCredential,
  type PrimaryCredential,
  withNodes,
} from './replication/credential.ts';
export { PrimaryLink, type PrimaryLinkStatus, reconnectLimits } from './replication/primary-link.ts';
export { ReplicationPort } from './replication/replication-port.ts';
export { makeSecondaryRequest } from './replication/secondary-certificate.ts';
export { SecondaryDesk } from './replication/secondary-desk.ts';

// A cluster whose consensus is elsewhere.

export type { NodeRegistry } from './registered/registered-nodes.ts';
export { RegisteredPeers } from './registered-peers.ts';

// Requests: forwarding to the active node, waiting for an index, and refusals.

export { clusterRefusalStatuses, clusterRefusals, refusalText } from './refusals/refusal-reply.ts';
export { historyOf, type Reached, reachedState } from './standbys/reached-state.ts';
export { replicationModes } from './standbys/replication-modes.ts';
export { placeOf, serviceIndexOf } from './standbys/service-history.ts';
export { StateComparison } from './standbys/state-comparison.ts';
export {
  callerHeader,
  certificateHeader,
  Forwarder,
  forwardedByHeader,
  LeadershipTransferred,
  leadershipTransferredHeader,
  NoActiveNode,
  notExecutedHeader,
} from './transport/forwarder.ts';
