import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { addFields, bool, fieldsIn, flag, text, whole } from '../terminal/field-options.ts';
import { textFrom } from '../terminal/input.ts';
import { fieldOption, serverOptions } from '../terminal/options.ts';
import { snapshotCommands } from './snapshot.ts';

const joinFields = {
  leader_ca_cert: text('pem', 'CA certificate for that address: PEM or @file'),
  retry: flag('make the node retry until it has joined'),
  non_voter: flag('join as a non-voter: it serves requests but does not vote'),
};

/** `operator raft`: cluster membership, snapshots and autopilot. */
export function raftCommands(operator: Command, runner: Runner): void {
  const { serverAction } = runner;
  serverOptions(operator.command('rotate-authority'))
    .description('rotate the certificate authority of the cluster')
    .option('--status', 'only show the progress of the rotation')
    .action(serverAction(rotateAuthority));

  const raft = operator.command('raft').description('manage cluster members, snapshots and autopilot');

  serverOptions(raft.command('list-peers'))
    .description('list the cluster members known to the node at the address')
    .action(
      serverAction(async ({ client, output }) => {
        const { data } = await client.sys.raft.configuration();
        const rows = data.config.servers.map((server) => [
          server.node_id,
          server.id,
          server.address,
          server.leader ? 'leader' : 'follower',
          server.voter,
        ]);
        output.table(['Node', 'ID', 'Address', 'State', 'Voter'], rows, data);
      }),
    );

  addFields(serverOptions(raft.command('join')), joinFields)
    .description('join the node at the address to an existing cluster')
    .argument('<leader-address>', 'API address of any unsealed member, for example https://n1.example:8200')
    .action(serverAction(join));

  for (const { name, description, done } of [
    { name: 'remove-peer', description: 'permanently remove a node from the cluster', done: 'was removed from the cluster' },
    { name: 'promote', description: 'promote a node to voter', done: 'becomes a voter when it has caught up' },
    { name: 'demote', description: 'demote a voter to non-voter', done: 'is now a non-voter' },
  ] as const)
    serverOptions(raft.command(name))
      .description(description)
      .argument('<server>', 'name or ID of the node')
      .action(
        serverAction(async ({ client: { sys }, output }, server: string) => {
          const change = { 'remove-peer': sys.raft.removePeer, promote: sys.raft.promote, demote: sys.raft.demote }[name];
          output.done(await change.call(sys.raft, server), `${server} ${done}.`);
        }),
      );

  snapshotCommands(raft, runner);
  autopilotCommands(raft, runner);
}

async function rotateAuthority({ client: { sys }, output }: Session, { status }: { readonly status?: true }): Promise<void> {
  if (status !== true)
    return output.done(
      await sys.raft.rotateAuthority(),
      'Started the rotation. To see its progress, run transitd operator rotate-authority --status.',
    );
  const { data } = await sys.raft.authorityRotation();
  output.rows(
    [
      ['Phase', data.phase],
      ['Authority', data.authority],
      ...(data.waits_for.length > 0 ? [['Waits For', data.waits_for] as const] : []),
    ],
    data,
  );
}

async function join({ client, output, sources }: Session, leader: string, options: object): Promise<number> {
  const { leader_ca_cert: ca, ...fields } = fieldsIn(joinFields, options);
  const answer = await client.sys.raft.join({
    leader_api_addr: leader,
    ...(ca !== undefined && { leader_ca_cert: await textFrom(ca, sources) }),
    ...fields,
  });
  output.rows([['Joined', answer.joined]], answer);
  return answer.joined || fields.retry === true ? exitCode.ok : exitCode.denied;
}

const autopilotFields = {
  cleanup_dead_servers: bool('whether to remove dead servers: true or false'),
  dead_server_last_contact_threshold: text('duration', 'time without contact after which a server is dead'),
  last_contact_threshold: text('duration', 'time without contact after which a member is unhealthy'),
  max_trailing_logs: whole('count', 'number of log entries a healthy member may lag behind'),
  min_quorum: whole('count', 'minimum number of voters that cleanup keeps'),
};

function autopilotCommands(raft: Command, { serverAction }: Runner): void {
  const autopilot = raft.command('autopilot').description('show member health and configure dead-server cleanup');

  serverOptions(autopilot.command('state'))
    .description('show the health of the members, as seen by the active node')
    .action(
      serverAction(async ({ client, output }) => {
        const { data } = await client.sys.raft.autopilotState();
        if (output.format === 'json') return output.json(data);
        output.rows([
          ['Healthy', data.healthy],
          ['Failure Tolerance', data.failure_tolerance],
          ['Leader', data.leader],
          ['Voters', data.voters],
          ['Non Voters', data.non_voters],
        ]);
        const rows = Object.entries(data.servers).map(([name, server]) => [
          name,
          server.address,
          server.status,
          server.node_status,
          server.healthy,
          server.last_contact,
          server.last_index,
          server.version,
        ]);
        output.line('');
        output.table(['Node', 'Address', 'Role', 'Status', 'Healthy', 'Last Contact', 'Last Index', 'Version'], rows, data);
      }),
    );

  fieldOption(autopilot.command('get-config'))
    .description('show the autopilot configuration')
    .action(
      serverAction(async ({ client, output }, options: { field?: string }) => {
        output.answer(await client.sys.raft.autopilotConfig(), options);
      }),
    );

  addFields(serverOptions(autopilot.command('set-config')), autopilotFields)
    .description('change autopilot settings; omitted settings keep their values')
    .action(
      serverAction(async ({ client, output }, options: object) => {
        const config = fieldsIn(autopilotFields, options);
        if (Object.keys(config).length === 0) throw new StartError('no setting to change: use at least one option');
        output.done(await client.sys.raft.configureAutopilot(config), 'Changed the autopilot configuration.');
      }),
    );
}
