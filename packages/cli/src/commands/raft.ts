import type { AutopilotConfig } from '@transitd/client';
import { exitCode, StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { textFrom } from '../terminal/input.ts';
import { asksServer, showsField, wholeNumber } from '../terminal/options.ts';
import { snapshotCommands } from './snapshot.ts';

interface JoinOptions {
  readonly leaderCaCert?: string;
  readonly retry?: true;
  readonly nonVoter?: true;
}

/** `operator raft`: the members of the cluster. */
export function raftCommands(operator: Command, runner: Runner): void {
  const { asking } = runner;
  asksServer(operator.command('rotate-authority'))
    .description("give the cluster a new authority that signs the nodes' certificates")
    .option('--status', 'only show how far a rotation has come')
    .action(asking(rotateAuthority));

  const raft = operator.command('raft').description('the members of the cluster, and its state as a file');

  asksServer(raft.command('list-peers'))
    .description('show the members, as the node at the address knows them')
    .action(
      asking(async ({ client, output }) => {
        const { data } = await client.sys.raft.configuration();
        const rows = data.config.servers.map((server) => [
          server.node_id,
          server.id,
          server.address,
          server.leader ? 'leader' : 'follower',
          server.voter,
        ]);
        output.table(['Node', 'Id', 'Address', 'State', 'Voter'], rows, data);
      }),
    );

  asksServer(raft.command('join'))
    .description('make the node at the address a member of the cluster that another node belongs to')
    .argument('<leader-address>', 'address of any unsealed member, such as https://n1.example:8200')
    .option('--leader-ca-cert <pem>', 'authority of that address, PEM or @file')
    .option('--retry', 'let the node try until it has joined')
    .option('--non-voter', 'it answers requests, and has no vote')
    .action(asking(join));

  for (const { name, says, done } of [
    { name: 'remove-peer', says: 'end the membership of a node, for good', done: 'is no member any more' },
    { name: 'promote', says: 'let a node vote', done: 'votes as soon as it has caught up' },
    { name: 'demote', says: 'let a node vote no more', done: 'has no vote any more' },
  ] as const)
    asksServer(raft.command(name))
      .description(says)
      .argument('<server>', 'name or id of the node')
      .action(
        asking(async ({ client: { sys }, output }, server: string) => {
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
      'The rotation has begun; operator rotate-authority --status shows how far it has come.',
    );
  const { data } = await sys.raft.authorityRotation();
  output.rows(
    [
      ['Phase', data.phase],
      ['Authority', data.authority],
      ['Waits For', data.waits_for],
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

function autopilotCommands(raft: Command, { asking }: Runner): void {
  const autopilot = raft.command('autopilot').description('how the members are, and what is done about dead ones');

  asksServer(autopilot.command('state'))
    .description('show how the active node finds the members')
    .action(
      asking(async ({ client, output }) => {
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
        output.table(['Node', 'Address', 'Part', 'Status', 'Healthy', 'Last Contact', 'Last Index', 'Version'], rows, data);
      }),
    );

  showsField(autopilot.command('get-config'))
    .description('show the settings')
    .action(
      asking(async ({ client, output }, options: { field?: string }) => {
        output.answer(await client.sys.raft.autopilotConfig(), options);
      }),
    );

  asksServer(autopilot.command('set-config'))
    .description('change settings; what is not given stays')
    .option('--cleanup-dead-servers <bool>', 'whether members are removed that were silent for too long')
    .option('--dead-server-last-contact-threshold <duration>', 'for how long')
    .option('--last-contact-threshold <duration>', 'silence from which a member is not healthy')
    .option('--max-trailing-logs <count>', 'entries that a healthy member may be behind', wholeNumber)
    .option('--min-quorum <count>', 'voters that are never removed', wholeNumber)
    .action(
      asking(async ({ client, output }, options: AutopilotOptions) => {
        const config = settingsOf(options);
        if (Object.keys(config).length === 0) throw new StartError('there is no setting to change');
        output.done(await client.sys.raft.configureAutopilot(config), 'The settings are changed.');
      }),
    );
}

function settingsOf(options: AutopilotOptions): Partial<AutopilotConfig> {
  const cleanup = options.cleanupDeadServers;
  if (cleanup !== undefined && cleanup !== 'true' && cleanup !== 'false')
    throw new StartError('--cleanup-dead-servers is true or false');
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
