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

export {
  authorityPath,
  type ClusterAuthority,
  certify,
  isPair,
  keyIn,
  makeRequest,
  newKey,
  readAuthority,
  requestFor,
} from './membership/authority.ts';
export { fingerprintOf, nameByAny } from './membership/certificate.ts';
export { overtakenFile, recordExclusion, removalFile } from './membership/exclusion.ts';
export { writeIdentity } from './membership/identity.ts';
export { decodeMembership, encodeMembership, isHostAndPort, type Member, parseHostAndPort } from './membership/membership.ts';
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

// Connections: of members with members, and of callers that are no members.

export { untrustedReason } from './refusals/untrusted-reason.ts';
export type { GuestStanding } from './transport/callers.ts';
export type { GuestHandlers, GuestRequest, GuestStream } from './transport/guest-server.ts';
export { type Connect, connectionBy, openWebSocket } from './transport/open-web-socket.ts';
export { connectTo } from './transport/peer-connection.ts';
export { backoffMs, type TransportLimits } from './transport/peer-link.ts';

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
