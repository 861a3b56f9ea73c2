// The cluster code of one node, and the interfaces of the node and its storage.

export { Cluster } from './cluster.ts';
export type { MembershipPorts, Storage } from './ports/storage-port.ts';

// Membership: identities, the authority that signs them, and the configuration that lists them.

export { authorityPath, type ClusterAuthority, makeRequest, readAuthority } from './membership/authority.ts';
export { fingerprintOf } from './membership/certificate.ts';
export { overtakenFile, recordExclusion, removalFile } from './membership/exclusion.ts';
export { type NodeIdentity, writeIdentity } from './membership/identity.ts';
export { decodeMembership, encodeMembership } from './membership/membership.ts';

// Joins: the joiner's side and the leader's side.

export { JoinClient } from './join/join-client.ts';
export { JoinDesk } from './join/join-desk.ts';
export { sendByHttp } from './join/join-http.ts';
export { isLeaderAddress, joinAnswerSchema, joinRequestSchema } from './join/join-messages.ts';
export { PendingJoin } from './join/join-pending.ts';
export { JoinError } from './refusals/join-error.ts';

// Operation: changes of the members, autopilot, rotation of the authority.

export { AuthorityRotation } from './maintenance/authority-rotation.ts';
export { Autopilot } from './maintenance/autopilot.ts';
export type { AutopilotSettings } from './maintenance/autopilot-settings.ts';
export type { ServerState } from './maintenance/autopilot-state.ts';
export { MemberOperations } from './maintenance/member-operations.ts';

// Requests: forwarding to the active node, waiting for an index, and refusals.

export { clusterRefusalAnswers, isClusterRefusal } from './refusals/refusal-reply.ts';
export { AppliedIndex } from './standbys/applied-index.ts';
export { callerHeader, Forwarder, forwardedByHeader } from './transport/forwarder.ts';
export { LeadershipTransferred, leadershipTransferredHeader } from './transport/leadership-transferred.ts';
