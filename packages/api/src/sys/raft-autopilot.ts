import { type Cluster, type ServerState, serverIdOf } from '@transitd/cluster';
import {
  bool,
  boolean,
  dataReply,
  duration,
  type FieldSchema,
  ignoredField,
  int,
  integer,
  type JsonSchema,
  list,
  map,
  object,
  string,
  time,
  writtenReply,
} from '@transitd/http';
import { version } from '@transitd/process';
import * as answers from '../operation/answers.ts';
import { changesIn, memberSchemas, membersIn } from '../operation/kept-fields.ts';
import { guardedOnSecondary, type Route } from '../operation/operation.ts';
import { shown } from '../operation/shown.ts';
import { durationText, secondsText } from './duration-text.ts';
import { requireCluster } from './raft.ts';

/** A member, and what the health of all of them was decided from. */
interface ServerView {
  readonly server: ServerState;
  readonly id: string;
  readonly cluster: Cluster;
}

const shownServer = shown<ServerView>({
  id: [string, ({ id }) => id],
  name: [string, ({ server: { member } }) => member.name],
  address: [string, ({ server: { member } }) => member.clusterAddress],
  node_status: [{ enum: ['alive', 'failed'] }, ({ server: { alive } }) => (alive ? 'alive' : 'failed')],
  last_contact: [string, ({ server: { silentMs } }) => secondsText(silentMs)],
  last_term: [integer, ({ server: { lastTerm } }) => lastTerm],
  last_index: [integer, ({ server: { lastIndex } }) => lastIndex],
  healthy: [boolean, ({ server: { healthy } }) => healthy],
  'stable_since?': [time, ({ server: { member }, cluster }) => cluster.autopilot.stableSince(member.id)?.toISOString()],
  status: [{ enum: ['leader', 'voter', 'non-voter'] }, ({ server: { role } }) => role],
  version: [
    string,
    ({ server: { role, member }, cluster }) =>
      role === 'leader' ? version : (cluster.standbys.report(member.id)?.version ?? ''),
  ],
  node_type: [{ enum: ['voter', 'non-voter'] }, ({ server: { role } }) => (role === 'non-voter' ? role : 'voter')],
});

interface StateView {
  readonly healthy: boolean;
  readonly failureTolerance: number;
  readonly servers: readonly ServerView[];
}

const idsOf = ({ servers }: StateView, only: (role: ServerState['role']) => boolean): readonly string[] =>
  servers.filter(({ server }) => only(server.role)).map(({ id }) => id);

const shownState = shown<StateView>({
  healthy: [boolean, ({ healthy }) => healthy],
  failure_tolerance: [integer, ({ failureTolerance }) => failureTolerance],
  leader: [string, (state) => idsOf(state, (role) => role === 'leader')[0] ?? ''],
  voters: [list(string), (state) => idsOf(state, (role) => role !== 'non-voter')],
  non_voters: [list(string), (state) => idsOf(state, (role) => role === 'non-voter')],
  servers: [map(shownServer.schema), ({ servers }) => Object.fromEntries(servers.map((one) => [one.id, shownServer.json(one)]))],
});

const autopilotState = guardedOnSecondary({
  use: 'reads',
  name: 'raft-autopilot-state',
  about: 'Read the health of the members, as known to the active node',
  answers: answers.data(shownState.schema),
  capability: 'read',
  where: 'leader',
  run: async (node) => {
    const cluster = requireCluster(node);
    const state = await cluster.autopilot.evaluate();
    const members = state.servers.map(({ member }) => member);
    const servers = state.servers.map((server) => ({ server, id: serverIdOf(members, server.member), cluster }));
    return dataReply(shownState.json({ ...state, servers }));
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

const isDuration = (name: string): boolean => settingsFields[name as keyof typeof settingsFields].kind === 'duration';

/** Durations are texts here, as in the peers. */
const settingsSchemas = Object.entries(memberSchemas(settingsFields)).map(([name, schema]): [string, JsonSchema] => [
  name,
  isDuration(name) ? string : schema,
]);

const readSettings = guardedOnSecondary({
  use: 'reads',
  name: 'raft-autopilot-configuration-read',
  about: 'Read the autopilot settings',
  answers: answers.data(object(Object.fromEntries(settingsSchemas))),
  capability: 'read',
  run: async (node) => {
    const members = Object.entries(membersIn(settingsFields, await requireCluster(node).autopilot.settings()));
    return dataReply(
      Object.fromEntries(members.map(([name, value]) => [name, isDuration(name) ? durationText(Number(value)) : value])),
    );
  },
});

const writeSettings = guardedOnSecondary({
  use: 'changes',
  name: 'raft-autopilot-configuration-write',
  about: 'Update the autopilot settings; omitted fields keep their values',
  takes: settingsFields,
  answers: answers.written,
  capability: 'update',
  run: async (node, { values }) => {
    await requireCluster(node).autopilot.change(changesIn(settingsFields, values));
    const ineffective =
      values.server_stabilization_time === undefined
        ? []
        : ['server_stabilization_time is stored but has no effect: a new server becomes a voter as soon as it has caught up'];
    return writtenReply(ineffective);
  },
});

/** Autopilot: the health of the members, and the settings of dead-server cleanup. Clients send an operation token by POST. */
export const raftAutopilotRoutes: readonly Route[] = [
  { path: 'sys/storage/raft/autopilot/state', operations: { GET: autopilotState, POST: autopilotState } },
  { path: 'sys/storage/raft/autopilot/configuration', operations: { GET: readSettings, POST: writeSettings } },
];
