import type { Dashboard } from './panels.ts';

/** Whether the cluster is well, at a glance. */
export const overview: Dashboard = {
  uid: 'transitd',
  title: 'transitd',
  rows: [
    [
      {
        type: 'stat',
        title: 'Nodes up',
        description: 'Scrape targets that answer Prometheus.',
        unit: 'short',
        queries: [['transitd:nodes_up:count', '']],
      },
      {
        type: 'stat',
        title: 'Active nodes',
        description: 'Exactly one, except for moments during an election.',
        unit: 'short',
        queries: [['transitd:nodes_active:sum', '']],
      },
      {
        type: 'stat',
        title: 'Failures tolerated',
        description: 'Healthy voters that can fail without loss of the majority.',
        unit: 'short',
        queries: [['max(svc_autopilot_failure_tolerance)', '']],
      },
      {
        type: 'stat',
        title: 'Error rate',
        description: 'Share of responses with status 5xx over five minutes.',
        unit: 'percentunit',
        queries: [['transitd:responses_failed:ratio_rate5m', '']],
      },
      {
        type: 'stat',
        title: 'Nodes with low disk space',
        description: 'Free space is below raft.disk_reserve. The active node refuses writes.',
        unit: 'short',
        queries: [['sum(svc_disk_low)', '']],
      },
      {
        type: 'stat',
        title: 'Firing alerts',
        description: 'Each has a section in the runbook.',
        unit: 'short',
        queries: [['sum(ALERTS{alertstate="firing"}) or vector(0)', '']],
      },
    ],
    [
      {
        title: 'Requests',
        description: 'Responses per second by status class.',
        unit: 'reqps',
        queries: [['transitd:responses:rate1m', '{{class}}']],
      },
      {
        title: 'Request latency (p99)',
        description: 'Milliseconds, by node.',
        unit: 'ms',
        queries: [['transitd:request_ms:p99_5m', '{{instance}}']],
      },
    ],
    [
      {
        type: 'state-timeline',
        title: 'Active node',
        description: '1 on the active node.',
        unit: 'short',
        queries: [['svc_core_active', '{{instance}}']],
      },
      {
        type: 'state-timeline',
        title: 'Unsealed',
        description: '0 on a sealed node, which serves nothing.',
        unit: 'short',
        queries: [['svc_core_unsealed', '{{instance}}']],
      },
    ],
    [
      {
        title: 'Raft term',
        description: 'Each increase is an election.',
        unit: 'short',
        queries: [['svc_raft_storage_stats_term', '{{instance}}']],
      },
      {
        title: 'Apply lag (entries)',
        description: 'A node that is behind forwards requests to the active node.',
        unit: 'short',
        queries: [['transitd:apply_lag:entries', '{{instance}}']],
      },
      {
        title: 'Servers in use by HAProxy',
        description: 'Nodes that pass the health check of each front end.',
        unit: 'short',
        queries: [['haproxy_backend_active_servers{proxy=~"any|leader"}', '{{proxy}}']],
      },
    ],
  ],
};
