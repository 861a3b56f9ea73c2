import type { Health, Leader, SealStatus } from '@transitd/client';
import { exitCode } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { serverOptions } from '../terminal/options.ts';
import type { Rows } from '../terminal/table.ts';

/** `status`: the seal and HA status of a node. */
export function statusCommand(program: Command, { serverAction }: Runner): void {
  serverOptions(program.command('status'))
    .description('show the seal and HA status of a node; exits 0 if unsealed, 2 if sealed')
    .action(serverAction(showStatus));
}

async function showStatus({ client, output }: Session): Promise<number> {
  const seal = await client.sys.sealStatus();
  // The node may have been sealed since the first request.
  const leader = seal.sealed ? undefined : await client.sys.leader().catch(() => undefined);
  const health = await client.sys.health().catch(() => undefined);
  const { seal_failure, replication_dr_mode } = health ?? {};
  output.rows(
    [...sealRows(seal), ...(health === undefined ? [] : healthRows(health)), ...(leader === undefined ? [] : leaderRows(leader))],
    { ...seal, ...leader, ...(seal_failure && { seal_failure }), ...(replication_dr_mode && { replication_dr_mode }) },
  );
  return seal.sealed ? exitCode.denied : exitCode.ok;
}

export const sealRows = (seal: SealStatus): Rows => [
  ['Seal Type', seal.type],
  ['Initialized', seal.initialized],
  ['Sealed', seal.sealed],
  [seal.recovery_seal ? 'Total Recovery Shares' : 'Total Shares', seal.n],
  ['Threshold', seal.t],
  ...(seal.progress > 0 ? [[seal.sealed ? 'Unseal Progress' : 'Migration Progress', `${seal.progress}/${seal.t}`] as const] : []),
  ...(seal.migration ? [['Seal Migration', 'pending'] as const] : []),
  ...(seal.nonce === '' ? [] : [['Unseal Nonce', seal.nonce] as const]),
  ['Version', seal.version],
  ['Storage Type', seal.storage_type],
  ...(seal.cluster_name === undefined ? [] : [['Cluster Name', seal.cluster_name] as const]),
  ...(seal.cluster_id === undefined ? [] : [['Cluster ID', seal.cluster_id] as const]),
  ...(seal.removed_from_cluster ? [['Removed From Cluster', true] as const] : []),
];

/** Why the seal cannot be opened, and the role of the cluster in a replication set. */
const healthRows = ({ seal_failure, replication_dr_mode: mode }: Health): Rows => [
  ...(seal_failure === undefined ? [] : [['Seal Failure', seal_failure] as const]),
  ...(mode === 'disabled' ? [] : [['DR Replication', mode] as const]),
];

const leaderRows = (leader: Leader): Rows => [
  ['HA Enabled', leader.ha_enabled],
  ['HA Mode', leader.is_self === true ? 'active' : 'standby'],
  ...(leader.active_time === undefined ? [] : [['Active Since', leader.active_time] as const]),
  ['Active Node Address', leader.leader_address ?? 'unknown'],
  ['Raft Committed Index', leader.raft_committed_index],
  ['Raft Applied Index', leader.raft_applied_index],
];
