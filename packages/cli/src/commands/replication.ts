import type { ReplicationStatus } from '@transitd/client';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { serverOptions } from '../terminal/options.ts';
import { primaryCommands } from './replication-primary.ts';
import { operationTokenCommands, secondaryCommands } from './replication-secondary.ts';

/** `replication`: a second cluster that takes over after a disaster. */
export function replicationCommands(program: Command, runner: Runner): void {
  const { serverAction } = runner;
  const replication = program.command('replication').description('replicate to a second cluster, and fail over to it');

  serverOptions(replication.command('status'))
    .description('show the replication of the cluster, as known to the node at the address')
    .action(serverAction(showStatus));

  serverOptions(replication.command('divergence'))
    .description('show how many changes this former primary lost when it followed its successor')
    .action(serverAction(async ({ client, output }) => output.answer(await client.sys.replication.divergence())));

  primaryCommands(replication, runner);
  secondaryCommands(replication, runner);
  operationTokenCommands(replication, runner);
}

async function showStatus({ client, output }: Session): Promise<void> {
  const { data } = await client.sys.replication.status();
  if (output.format === 'json') return output.json(data);
  const row = (title: string, value: unknown): readonly (readonly [string, unknown])[] =>
    value === undefined ? [] : [[title, value]];
  output.rows([
    ['Mode', data.mode],
    ...row('State', data.state),
    ...row('Replication Set', data.cluster_id),
    ...row('Epoch', data.epoch),
    ...row('Position', data.last_wal ?? data.last_remote_wal),
    ...row('Secondary', data.secondary_id),
    ...row('Connection', data.connection_status),
    ...row('Stop Reason', data.stop_reason),
    ...row('Primary Addresses', data.known_primary_cluster_addrs),
    ...row('Lag (entries)', data.lag_entries),
    ...row('Lag (ms)', data.lag_ms),
    ...row('Before Restore', data.misses_restore),
    ...row('Canary Age (ms)', data.replication_primary_canary_age_ms),
    ...row('Fence', data.fence?.state),
    ...row('Acknowledge', data.acknowledge?.mode),
    ...row('On Timeout', data.acknowledge?.on_timeout),
    ...row('Promoted', data.promotion?.time),
    ...row('Promoted At Position', data.promotion?.position),
    ...row('Missing At Promotion', data.promotion?.missing),
    ...row('Promoted Before Restore', data.promotion?.misses_restore),
    ...row('Diverged State', data.diverged_state),
    ...row('Changes Lost After', data.divergence?.point),
    ...row('Digest', data.merkle_root),
  ]);
  if (data.secondaries === undefined || data.secondaries.length === 0) return;
  output.line('');
  const titles = ['Secondary', 'Connection', 'Position', 'Lag (entries)', 'Lag (ms)', 'Heard (ms ago)', 'Unproven Epoch'];
  output.table(titles, rowsOf(data.secondaries), data);
}

const rowsOf = (secondaries: NonNullable<ReplicationStatus['secondaries']>): readonly (readonly unknown[])[] =>
  secondaries.map((one) =>
    [
      ...[one.node_id, one.connection_status, one.last_wal, one.lag_entries, one.lag_ms],
      ...[one.last_heartbeat_duration_ms, one.unproven_epoch],
    ].map((value) => value ?? ''),
  );
