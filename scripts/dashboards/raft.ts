import type { Dashboard } from './panels.ts';
import { replicationRow } from './replication.ts';

/** Consensus: elections, commits, replication, membership. */
export const raft: Dashboard = {
  uid: 'transitd-raft',
  title: 'transitd Raft',
  rows: [
    [
      {
        title: 'Elections',
        description: 'Times that each node became leader, in ten minutes.',
        unit: 'short',
        queries: [['increase(svc_raft_state_leader[10m])', '{{instance}}']],
      },
      {
        title: 'Candidacies',
        description: 'Candidacies without a new leader suggest votes that are split or lost.',
        unit: 'short',
        queries: [['increase(svc_raft_state_candidate[10m])', '{{instance}}']],
      },
      {
        title: 'Raft term',
        description: 'Each increase is an election.',
        unit: 'short',
        queries: [['svc_raft_storage_stats_term', '{{instance}}']],
      },
    ],
    [
      {
        title: 'Writes committed',
        description: 'Transactions that each node proposed and that were committed, per second.',
        unit: 'ops',
        queries: [['rate(svc_raft_apply[1m])', '{{instance}}']],
      },
      {
        title: 'Commit time',
        description: 'From the proposal of a transaction until the active node has applied it.',
        unit: 'ms',
        queries: [
          ['histogram_quantile(0.5, sum by (le) (rate(svc_raft_commit_time_bucket[5m])))', 'p50'],
          ['histogram_quantile(0.99, sum by (le) (rate(svc_raft_commit_time_bucket[5m])))', 'p99'],
        ],
      },
      {
        title: 'Last contact with voters (p99)',
        description: 'The active node samples every second how long ago it heard from each voter.',
        unit: 'ms',
        queries: [
          ['histogram_quantile(0.99, sum by (instance, le) (rate(svc_raft_leader_last_contact_bucket[5m])))', '{{instance}}'],
        ],
      },
    ],
    [
      {
        title: 'Apply lag (entries)',
        description: 'Entries between the highest commit index of the cluster and what the node has applied.',
        unit: 'short',
        queries: [['transitd:apply_lag:entries', '{{instance}}']],
      },
      {
        title: 'Lag of the followers (entries)',
        description: 'As the active node sees them.',
        unit: 'short',
        queries: [['svc_raft_storage_follower_applied_index_delta', '{{peer_id}}']],
      },
      {
        title: 'Flush lag (entries)',
        description: 'Applied entries that are only in the write-ahead log so far.',
        unit: 'short',
        queries: [['svc_raft_storage_stats_applied_index - svc_raft_storage_stats_flushed_index', '{{instance}}']],
      },
    ],
    [
      {
        title: 'Heartbeat round trip (p99)',
        description: 'From each standby to the active node.',
        unit: 'ms',
        queries: [['histogram_quantile(0.99, sum by (instance, le) (rate(svc_ha_rpc_client_echo_bucket[5m])))', '{{instance}}']],
      },
      {
        title: 'Heartbeats without an answer',
        description: 'Per second. After two missed heartbeats a standby stops serving reads.',
        unit: 'ops',
        queries: [['sum by (instance) (rate(svc_ha_rpc_client_echo_errors[1m]))', '{{instance}}']],
      },
      {
        title: 'Last log index',
        description: 'Index of the newest entry in the log.',
        unit: 'short',
        queries: [['svc_raft_storage_stats_last_index', '{{instance}}']],
      },
    ],
    [
      {
        title: 'Members',
        description: 'Members in the newest membership list that each node knows.',
        unit: 'short',
        queries: [['svc_raft_peers', '{{instance}}']],
      },
      {
        title: 'Health of the members',
        description: '1 if the active node considers the member healthy.',
        unit: 'short',
        queries: [['svc_autopilot_node_healthy', '{{node_id}}']],
      },
      {
        title: 'Rotation of the authority waits for',
        description: 'Members that hold up a rotation of the authority of the cluster.',
        unit: 'short',
        queries: [['svc_raft_authority_rotation_waits_for', '{{peer_id}}']],
      },
    ],
    replicationRow,
  ],
};
