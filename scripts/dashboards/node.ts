import type { Dashboard } from './panels.ts';

/** One node, or several next to each other: process, disk, clock, barrier, connections. */
export const node: Dashboard = {
  uid: 'transitd-node',
  title: 'transitd node',
  selectsInstance: true,
  rows: [
    [
      {
        title: 'CPU',
        description: 'Seconds of processor time per second.',
        unit: 'percentunit',
        queries: [['rate(process_cpu_seconds_total{job="transitd", instance=~"$instance"}[1m])', '{{instance}}']],
      },
      {
        title: 'Event-loop lag (p99)',
        description: 'A high lag delays requests, heartbeats and votes of the node.',
        unit: 's',
        queries: [['nodejs_eventloop_lag_p99_seconds{job="transitd", instance=~"$instance"}', '{{instance}}']],
      },
      {
        title: 'Garbage collection',
        description: 'Seconds per second, by kind.',
        unit: 'percentunit',
        queries: [['rate(nodejs_gc_duration_seconds_sum{job="transitd", instance=~"$instance"}[1m])', '{{instance}} {{kind}}']],
      },
    ],
    [
      {
        title: 'Memory',
        description: 'Resident memory of the process.',
        unit: 'bytes',
        queries: [['process_resident_memory_bytes{job="transitd", instance=~"$instance"}', '{{instance}}']],
      },
      {
        title: 'Heap in use',
        description: 'Memory of JavaScript objects.',
        unit: 'bytes',
        queries: [['nodejs_heap_size_used_bytes{job="transitd", instance=~"$instance"}', '{{instance}}']],
      },
      {
        title: 'Open files',
        description: 'Open file descriptors, and their maximum.',
        unit: 'short',
        queries: [
          ['process_open_fds{job="transitd", instance=~"$instance"}', '{{instance}}'],
          ['process_max_fds{job="transitd", instance=~"$instance"}', '{{instance}} maximum'],
        ],
      },
    ],
    [
      {
        title: 'Hanging disk writes',
        description: 'Time for which the present write to the disk has been in progress.',
        unit: 's',
        queries: [['svc_disk_stalled_seconds{instance=~"$instance"}', '{{instance}}']],
      },
      {
        title: 'Low disk space',
        description: '1 if free space is below raft.disk_reserve.',
        unit: 'short',
        queries: [['svc_disk_low{instance=~"$instance"}', '{{instance}}']],
      },
      {
        title: 'Deviation of the wall clock',
        description: 'From the monotonic clock. Above ten seconds the clock is not trusted.',
        unit: 's',
        queries: [['abs(svc_core_clock_deviation_seconds{instance=~"$instance"})', '{{instance}}']],
      },
    ],
    [
      {
        title: 'Reads of records (p99)',
        description: 'Through the barrier, which decrypts them.',
        unit: 'ms',
        queries: [
          [
            'histogram_quantile(0.99, sum by (instance, le) (rate(svc_barrier_get_bucket{instance=~"$instance"}[5m])))',
            '{{instance}}',
          ],
        ],
      },
      {
        title: 'Transactions (p99)',
        description: 'Transactions that write records, until they are applied.',
        unit: 'ms',
        queries: [
          [
            'histogram_quantile(0.99, sum by (instance, le) (rate(svc_barrier_put_bucket{instance=~"$instance"}[5m])))',
            '{{instance}}',
          ],
        ],
      },
      {
        title: 'Values encrypted under the current barrier key',
        description: 'The key is rotated long before 2³².',
        unit: 'short',
        queries: [['svc_barrier_estimated_encryptions{instance=~"$instance"}', '{{instance}}']],
      },
    ],
    [
      {
        title: 'Time until certificates expire',
        description: 'The certificates in use, by listener.',
        unit: 's',
        queries: [['svc_certificate_expiry_timestamp_seconds{instance=~"$instance"} - time()', '{{instance}} {{address}}']],
      },
      {
        title: 'Release',
        description: 'Version that a node runs.',
        unit: 'short',
        queries: [['svc_build_info{instance=~"$instance"}', '{{instance}} {{version}}']],
      },
    ],
    [
      {
        title: 'Connections',
        description: 'Open client connections.',
        unit: 'short',
        queries: [['svc_core_connections{instance=~"$instance"}', '{{instance}}']],
      },
      {
        title: 'Requests in flight',
        description: 'Accepted and not answered yet.',
        unit: 'short',
        queries: [['svc_core_in_flight_requests{instance=~"$instance"}', '{{instance}}']],
      },
      {
        title: 'Connections closed by limits',
        description: 'Per second: to make room for others, and for too many pipelined requests.',
        unit: 'ops',
        queries: [
          ['rate(svc_core_connections_evicted{instance=~"$instance"}[1m])', '{{instance}} to make room'],
          ['rate(svc_core_connections_closed_pipelining{instance=~"$instance"}[1m])', '{{instance}} pipelining'],
        ],
      },
    ],
  ],
};
