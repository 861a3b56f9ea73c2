import type { AutopilotConfig } from '@transitd/client';
import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { textFrom } from '../terminal/input.ts';
import { fieldOption, serverOptions, wholeNumber } from '../terminal/options.ts';
import { snapshotCommands } from './snapshot.ts';

interface JoinOptions {
  readonly leaderCaCert?: string;
  readonly retry?: true;
  readonly nonVoter?: true;
}

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

  serverOptions(raft.command('join'))
    .description('join the node at the address to an existing cluster')
    .argument('<leader-address>', 'API address of any unsealed member, for example https://n1.example:8200')
    .option('--leader-ca-cert <pem>', 'CA certificate for that address: PEM or @file')
    .option('--retry', 'make the node retry until it has joined')
    .option('--non-voter', 'join as a non-voter: it serves requests but does not vote')
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

async function join({ client, output, sources }: Session, leader: string, options: JoinOptions): Promise<number> {
  const ca = options.leaderCaCert;
  const answer = await client.sys.raft.join({
    leader_api_addr: leader,
    ...(ca !== undefined && { leader_ca_cert: await textFrom(ca, sources) }),
    ...(options.retry === true && { retry: true }),
    ...(options.nonVoter === true && { non_voter: true }),
  });
  output.rows([['Joined', answer.joined]], answer);
  return answer.joined || options.retry === true ? exitCode.ok : exitCode.denied;
}

interface AutopilotOptions {
  readonly cleanupDeadServers?: string;
  readonly deadServerLastContactThreshold?: string;
  readonly lastContactThreshold?: string;
  readonly maxTrailingLogs?: number;
  readonly minQuorum?: number;
}

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

  serverOptions(autopilot.command('set-config'))
    .description('change autopilot settings; omitted settings keep their values')
    .option('--cleanup-dead-servers <bool>', 'whether to remove dead servers: true or false')
    .option('--dead-server-last-contact-threshold <duration>', 'time without contact after which a server is dead')
    .option('--last-contact-threshold <duration>', 'time without contact after which a member is unhealthy')
    .option('--max-trailing-logs <count>', 'number of log entries a healthy member may lag behind', wholeNumber)
    .option('--min-quorum <count>', 'minimum number of voters that cleanup keeps', wholeNumber)
    .action(
      serverAction(async ({ client, output }, options: AutopilotOptions) => {
        const config = settingsOf(options);
        if (Object.keys(config).length === 0) throw new StartError('no setting to change: use at least one option');
        output.done(await client.sys.raft.configureAutopilot(config), 'Changed the autopilot configuration.');
      }),
    );
}

function settingsOf(options: AutopilotOptions): Partial<AutopilotConfig> {
  const cleanup = options.cleanupDeadServers;
  if (cleanup !== undefined && cleanup !== 'true' && cleanup !== 'false')
    throw new StartError('--cleanup-dead-servers must be true or false');
  return {
    ...(cleanup !== undefined && { cleanup_dead_servers: cleanup === 'true' }),
    ...(options.deadServerLastContactThreshold !== undefined && {
      dead_server_last_contact_threshold: options.deadServerLastContactThreshold,
    }),
    ...(options.lastContactThreshold !== undefined && { last_contact_threshold: options.lastContactThreshold }),
    ...(options.maxTrailingLogs !== undefined && { max_trailing_logs: options.maxTrailingLogs }),
    ...(options.minQuorum !== undefined && { min_quorum: options.minQuorum }),
  };
}
