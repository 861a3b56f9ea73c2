import { X509Certificate } from 'node:crypto';
import {
  type AuthorityRotation,
  type Autopilot,
  type AutopilotSettings,
  type Cluster,
  fingerprintOf,
  type MemberOperations,
  type ServerState,
} from '@transitd/cluster';
import {
  bool,
  boolean,
  dataReply,
  duration,
  ignoredField,
  int,
  integer,
  list,
  map,
  object,
  RequestError,
  string,
  text,
  time,
  writtenReply,
} from '@transitd/http';
import type { Node } from '@transitd/node';
import { version } from '@transitd/process';
import * as answers from '../operation/answers.ts';
import { type GuardedOperation, guarded, type Route } from '../operation/operation.ts';
import { durationText, secondsText } from './duration-text.ts';

/** Who belongs to the cluster, as this node knows it: told by every node, also without a leader. */
const configuration = guarded({
  name: 'raft-configuration',
  about: 'Read the cluster members, as this node knows them',
  answers: answers.data(
    object({
      config: object({
        index: integer,
        servers: list(
          object({
            node_id: string,
            id: string,
            address: string,
            leader: boolean,
            protocol_version: string,
            voter: boolean,
            non_voter: boolean,
          }),
        ),
      }),
    }),
  ),
  capability: 'read',
  where: 'here',
  run: ({ node }) => {
    const { cluster } = node;
    const seen = node.consensus;
    const members = cluster?.membershipList.members ?? [];
    const listed = members.length > 0 ? members : [aloneIn(node)];
    const servers = listed.map(({ id, name, clusterAddress, nonVoter }) => ({
      node_id: name,
      id: String(id),
      address: clusterAddress,
      leader: seen?.leader === id,
      protocol_version: '3',
      voter: seen?.voters.includes(id) ?? false,
      non_voter: nonVoter,
    }));
    return dataReply(JSON.stringify({ config: { index: 0, servers } }));
  },
});

/** A node that nobody can join, or has not been active since somebody could. */
const aloneIn = ({ config, replicaStatus }: Node) => ({
  id: replicaStatus?.nodeId ?? 0,
  name: config.node_id,
  clusterAddress: config.cluster_addr ?? '',
  nonVoter: false,
});

/** A change of one member, by the server that the body names. */
const memberChange = (
  name: string,
  about: string,
  change: (operator: MemberOperations, serverId: string) => Promise<void>,
  rest: Pick<GuardedOperation, 'adds' | 'endsLeadership'>,
): GuardedOperation =>
  guarded({
    name,
    about,
    takes: { server_id: text('Name of the node, or its `id`', { required: true }), dr_operation_token: ignoredField('string') },
    answers: answers.written,
    capability: 'update',
    ...rest,
    run: async ({ node }, { values, warnings }) => {
      await change(requireCluster(node).operator, values.server_id ?? '');
      return writtenReply(warnings);
    },
  });

function requireCluster({ cluster }: Node): {
  readonly operator: MemberOperations;
  readonly autopilot: Autopilot;
  readonly rotation: AuthorityRotation;
  readonly cluster: Cluster;
} {
  const { operator, autopilot, rotation } = cluster ?? {};
  if (cluster === undefined || operator === undefined || autopilot === undefined || rotation === undefined)
    throw new RequestError('invalid_request', 'this node has no cluster_addr in its configuration: it has no other members');
  return { operator, autopilot, rotation, cluster };
}

const removePeer = memberChange(
  'raft-remove-peer',
  'Remove a member from the cluster',
  (operator, serverId) => operator.remove(serverId),
  { endsLeadership: true },
);
const promote = memberChange('raft-promote', 'Promote a non-voter to voter', (operator, serverId) => operator.promote(serverId), {
  adds: true,
});
const demote = memberChange('raft-demote', 'Demote a voter to non-voter', (operator, serverId) => operator.demote(serverId), {
  adds: true,
  endsLeadership: true,
});

/** How the active node finds the members. */
const autopilotState = guarded({
  name: 'raft-autopilot-state',
  about: 'Read the health of the members, as the active node sees it',
  answers: answers.data(
    object({
      healthy: boolean,
      failure_tolerance: integer,
      leader: string,
      voters: list(string),
      non_voters: list(string),
      servers: map(
        object(
          {
            id: string,
            name: string,
            address: string,
            node_status: { enum: ['alive', 'failed'] },
            last_contact: string,
            last_term: integer,
            last_index: integer,
            healthy: boolean,
            status: { enum: ['leader', 'voter', 'non-voter'] },
            version: string,
            node_type: { enum: ['voter', 'non-voter'] },
          },
          { stable_since: time },
        ),
      ),
    }),
  ),
  capability: 'read',
  where: 'leader',
  adds: true,
  run: async ({ node }) => {
    const { autopilot, cluster } = requireCluster(node);
    const { healthy, failureTolerance, servers } = await autopilot.look();
    const names = (only: (server: ServerState) => boolean) => servers.filter(only).map(({ member }) => member.name);
    const states = servers.map((server) => {
      const { member, part, alive, silentMs, lastTerm, lastIndex } = server;
      const state = {
        id: member.name,
        name: member.name,
        address: member.clusterAddress,
        node_status: alive ? 'alive' : 'failed',
        last_contact: secondsText(silentMs),
        last_term: lastTerm,
        last_index: lastIndex,
        healthy: server.healthy,
        stable_since: autopilot.stableSince(member.id)?.toISOString(),
        status: part,
        version: part === 'leader' ? version : (cluster.standbys.news(member.id)?.version ?? ''),
        node_type: part === 'non-voter' ? 'non-voter' : 'voter',
      };
      return [member.name, state] as const;
    });
    const data = {
      healthy,
      failure_tolerance: failureTolerance,
      leader: names(({ part }) => part === 'leader')[0] ?? '',
      voters: names(({ part }) => part !== 'non-voter'),
      non_voters: names(({ part }) => part === 'non-voter'),
      servers: Object.fromEntries(states),
    };
    return dataReply(JSON.stringify(data));
  },
});

const readSettings = guarded({
  name: 'raft-autopilot-configuration-read',
  about: 'Read the autopilot settings',
  answers: answers.data(
    object({
      cleanup_dead_servers: boolean,
      dead_server_last_contact_threshold: string,
      last_contact_threshold: string,
      max_trailing_logs: integer,
      min_quorum: integer,
      server_stabilization_time: string,
    }),
  ),
  capability: 'read',
  run: async ({ node }) => {
    const settings = await requireCluster(node).autopilot.settings();
    return dataReply(
      JSON.stringify({
        cleanup_dead_servers: settings.cleanupDeadServers,
        dead_server_last_contact_threshold: durationText(settings.deadServerLastContactThreshold),
        last_contact_threshold: durationText(settings.lastContactThreshold),
        max_trailing_logs: settings.maxTrailingLogs,
        min_quorum: settings.minQuorum,
        server_stabilization_time: durationText(settings.serverStabilizationTime),
      }),
    );
  },
});

const writeSettings = guarded({
  name: 'raft-autopilot-configuration-write',
  about: 'Update the autopilot settings; omitted fields keep their values',
  takes: {
    cleanup_dead_servers: bool('Remove dead members; requires `min_quorum` of 3 or more'),
    dead_server_last_contact_threshold: duration('Time without contact after which a member counts as dead; at least one minute'),
    last_contact_threshold: duration('Time without contact after which a member counts as unhealthy'),
    max_trailing_logs: int('Maximum number of log entries by which a healthy member may lag', { min: 0 }),
    min_quorum: int('Minimum number of voters to keep', { min: 0 }),
    server_stabilization_time: duration('Stored and returned, without effect'),
    disable_upgrade_migration: ignoredField('bool'),
    dr_operation_token: ignoredField('string'),
  },
  answers: answers.written,
  capability: 'update',
  run: async ({ node }, { values, warnings }) => {
    const changes: { readonly [Name in keyof AutopilotSettings]: AutopilotSettings[Name] | undefined } = {
      cleanupDeadServers: values.cleanup_dead_servers,
      deadServerLastContactThreshold: values.dead_server_last_contact_threshold,
      lastContactThreshold: values.last_contact_threshold,
      maxTrailingLogs: values.max_trailing_logs,
      minQuorum: values.min_quorum,
      serverStabilizationTime: values.server_stabilization_time,
    };
    const given = Object.entries(changes).filter(([, value]) => value !== undefined);
    await requireCluster(node).autopilot.change(Object.fromEntries(given));
    const ineffective =
      values.server_stabilization_time === undefined
        ? []
        : ['server_stabilization_time is stored but has no effect: a new server becomes a voter as soon as it has caught up'];
    return writtenReply([...warnings, ...ineffective]);
  },
});

/** What became of a rotation of the authority that signs the nodes' certificates. */
const authorityStatus = guarded({
  name: 'raft-authority-status',
  about: 'Read the progress of a CA rotation of the cluster and the members that it waits for',
  answers: answers.data(
    object({ phase: { enum: ['none', 'announced', 'switched'] }, authority: string, waits_for: list(string) }),
  ),
  capability: 'read',
  where: 'leader',
  adds: true,
  run: async ({ node }) => {
    const { rotation, cluster } = requireCluster(node);
    const { phase, waitsFor } = rotation.status;
    const signing = await cluster.signingAuthority();
    const authority = signing === undefined ? '' : fingerprintOf(new X509Certificate(signing.certificate));
    return dataReply(JSON.stringify({ phase, authority, waits_for: waitsFor }));
  },
});

const rotateAuthority = guarded({
  name: 'raft-authority-rotate',
  about:
    'Start a rotation of the CA that signs node certificates and membership lists; the old CA is dropped once no member needs it',
  answers: answers.written,
  capability: 'update',
  sudo: true,
  adds: true,
  run: async ({ node }) => {
    await requireCluster(node).rotation.begin();
    return writtenReply([]);
  },
});

/** The members of the cluster: who they are, how they are, and changes of them. */
export const raftRoutes: readonly Route[] = [
  { path: 'sys/storage/raft/configuration', operations: { GET: configuration } },
  { path: 'sys/storage/raft/remove-peer', operations: { POST: removePeer } },
  { path: 'sys/storage/raft/promote', operations: { POST: promote } },
  { path: 'sys/storage/raft/demote', operations: { POST: demote } },
  { path: 'sys/storage/raft/authority', operations: { GET: authorityStatus } },
  { path: 'sys/storage/raft/authority/rotate', operations: { POST: rotateAuthority } },
  { path: 'sys/storage/raft/autopilot/state', operations: { GET: autopilotState } },
  { path: 'sys/storage/raft/autopilot/configuration', operations: { GET: readSettings, POST: writeSettings } },
];
