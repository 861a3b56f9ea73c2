import type { Dashboard } from './panels.ts';

/** Requests from the side of their callers: operations, durations, refusals. */
export const transit: Dashboard = {
  uid: 'transitd-transit',
  title: 'transitd requests',
  rows: [
    [
      {
        title: 'Transit operations',
        description: 'Per second, on all transit mounts.',
        unit: 'ops',
        queries: [['sum by (operation) (rate(svc_route_transit__count[1m]))', '{{operation}}']],
      },
      {
        title: 'Operation latency (p99)',
        description: 'By operation, over all nodes.',
        unit: 'ms',
        queries: [['histogram_quantile(0.99, sum by (operation, le) (rate(svc_route_transit__bucket[5m])))', '{{operation}}']],
      },
    ],
    [
      {
        title: 'Responses',
        description: 'Per second by status class.',
        unit: 'reqps',
        queries: [['transitd:responses:rate1m', '{{class}}']],
      },
      {
        title: 'Request latency',
        description: 'Over all nodes and all requests.',
        unit: 'ms',
        queries: [
          ['histogram_quantile(0.5, sum by (le) (rate(svc_core_handle_request_bucket[5m])))', 'p50'],
          ['histogram_quantile(0.99, sum by (le) (rate(svc_core_handle_request_bucket[5m])))', 'p99'],
        ],
      },
    ],
    [
      {
        title: 'Requests executing and waiting',
        description: 'By the in-flight limit that they belong to.',
        unit: 'short',
        queries: [
          ['sum by (kind) (svc_core_requests_executing)', '{{kind}} executing'],
          ['sum by (kind) (svc_core_requests_waiting)', '{{kind}} waiting'],
        ],
      },
      {
        title: 'Requests refused',
        description: 'Per second: by a full in-flight limit (kind), and by rate limits.',
        unit: 'reqps',
        queries: [
          ['sum by (kind) (rate(svc_core_requests_refused[1m]))', '{{kind}}'],
          ['sum(rate(svc_quota_rate_limit_violation[1m]))', 'rate limit'],
        ],
      },
    ],
    [
      {
        title: 'Requests forwarded to the active node',
        description: 'Per second, by the node that forwards.',
        unit: 'reqps',
        queries: [['rate(svc_ha_rpc_client_forward_count[1m])', '{{instance}}']],
      },
      {
        title: 'Time to forward (p99)',
        description: 'Until the response of the active node.',
        unit: 'ms',
        queries: [
          ['histogram_quantile(0.99, sum by (instance, le) (rate(svc_ha_rpc_client_forward_bucket[5m])))', '{{instance}}'],
        ],
      },
      {
        title: 'Forwarded requests without an answer',
        description: 'Per second. Their outcome may be unknown.',
        unit: 'reqps',
        queries: [['rate(svc_ha_rpc_client_forward_errors[1m])', '{{instance}}']],
      },
    ],
    [
      {
        title: 'Time to write audit entries (p99)',
        description: 'A request waits for its entries.',
        unit: 'ms',
        queries: [
          ['histogram_quantile(0.99, sum by (device, le) (rate(svc_audit_log_request_bucket[5m])))', '{{device}} request'],
          ['histogram_quantile(0.99, sum by (device, le) (rate(svc_audit_log_response_bucket[5m])))', '{{device}} response'],
        ],
      },
      {
        title: 'Audit entries that failed',
        description: 'Per second. If no device works, requests are refused.',
        unit: 'ops',
        queries: [
          ['sum by (device) (rate(svc_audit_log_request_failure[1m]))', '{{device}} request'],
          ['sum by (device) (rate(svc_audit_log_response_failure[1m]))', '{{device}} response'],
        ],
      },
    ],
  ],
};
