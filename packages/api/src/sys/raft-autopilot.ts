import { type ServerState, serverIdOf } from '@transitd/cluster';
import {
  bool,
  boolean,
  dataReply,
  duration,
  type FieldSchema,
  ignoredField,
  int,
  integer,
  list,
  map,
  object,
  string,
  time,
  writtenReply,
} from '@transitd/http';
import { version } from '@transitd/process';
import * as answers from '../operation/answers.ts';
import { propertiesIn } from '../operation/kept-fields.ts';
import { guardedOnSecondary, type Route } from '../operation/operation.ts';
import { durationText, secondsText } from './duration-text.ts';
import { requireCluster } from './raft.ts';

const autopilotState = guardedOnSecondary({
  use: 'reads',
  name: 'raft-autopilot-state',
  about: 'Read the health of the members, as known to the active node',
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
  run: async (node) => {
    const cluster = requireCluster(node);
    const { healthy, failureTolerance, servers } = await cluster.autopilot.evaluate();
    const members = servers.map(({ member }) => member);
    const names = (only: (server: ServerState) => boolean) =>
      servers.filter(only).map(({ member }) => serverIdOf(members, member));
    const states = servers.map((server) => {
      const { member, role, alive, silentMs, lastTerm, lastIndex } = server;
      const state = {
        id: serverIdOf(members, member),
        name: member.name,
        address: member.clusterAddress,
        node_status: alive ? 'alive' : 'failed',
        last_contact: secondsText(silentMs),
        last_term: lastTerm,
        last_index: lastIndex,
        healthy: server.healthy,
        stable_since: cluster.autopilot.stableSince(member.id)?.toISOString(),
        status: role,
        version: role === 'leader' ? version : (cluster.standbys.report(member.id)?.version ?? ''),
        node_type: role === 'non-voter' ? 'non-voter' : 'voter',
      };
      return [state.id, state] as const;
    });
    const data = {
      healthy,
      failure_tolerance: failureTolerance,
      leader: names(({ role }) => role === 'leader')[0] ?? '',
      voters: names(({ role }) => role !== 'non-voter'),
      non_voters: names(({ role }) => role === 'non-voter'),
      servers: Object.fromEntries(states),
    };
    return dataReply(data);
  },
});

const settingsFields = {
  cleanup_dead_servers: bool('Remove dead members; requires `min_quorum` of 3 or more'),
  dead_server_last_contact_threshold: duration(
    'Time without contact to the leader after which a member counts as dead; at least one minute',
    { property: 'deadServerLastContactThreshold' },
  ),
  last_contact_threshold: duration('Time without contact to the leader after which a member counts as unhealthy', {
    property: 'lastContactThreshold',
  }),
  max_trailing_logs: int('Maximum number of log entries by which a healthy member may lag', { min: 0 }),
  min_quorum: int('Minimum number of voters to keep', { min: 0 }),
  server_stabilization_time: duration('Stored and returned, but has no effect', { property: 'serverStabilizationTime' }),
  disable_upgrade_migration: ignoredField('bool'),
} as const satisfies FieldSchema;

const readSettings = guardedOnSecondary({
  use: 'reads',
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
  run: async (node) => {
    const settings = await requireCluster(node).autopilot.settings();
    return dataReply({
      cleanup_dead_servers: settings.cleanupDeadServers,
      dead_server_last_contact_threshold: durationText(settings.deadServerLastContactThreshold),
      last_contact_threshold: durationText(settings.lastContactThreshold),
      max_trailing_logs: settings.maxTrailingLogs,
      min_quorum: settings.minQuorum,
      server_stabilization_time: durationText(settings.serverStabilizationTime),
    });
  },
});

const writeSettings = guardedOnSecondary({
  use: 'changes',
  name: 'raft-autopilot-configuration-write',
  about: 'Update the autopilot settings; omitted fields keep their values',
  takes: settingsFields,
  answers: answers.written,
  capability: 'update',
  run: async (node, { values, warnings }) => {
    const given = Object.entries(propertiesIn(settingsFields, values)).filter(([, value]) => value !== undefined);
    await requireCluster(node).autopilot.change(Object.fromEntries(given));
    const ineffective =
      values.server_stabilization_time === undefined
        ? []
        : ['server_stabilization_time is stored but has no effect: a new server becomes a voter as soon as it has caught up'];
    return writtenReply([...warnings, ...ineffective]);
  },
});

/** Autopilot: the health of the members, and the settings of dead-server cleanup. Clients send an operation token by POST. */
export const raftAutopilotRoutes: readonly Route[] = [
  { path: 'sys/storage/raft/autopilot/state', operations: { GET: autopilotState, POST: autopilotState } },
  { path: 'sys/storage/raft/autopilot/configuration', operations: { GET: readSettings, POST: writeSettings } },
];
