import { Counter, Gauge } from 'prom-client';
import { type MetricRow, type MetricTarget, type MetricType, registerRows } from './register.ts';

interface Work {
  readonly atWork: number;
  readonly waiting: number;
  readonly refused: number;
}

/** Running, waiting and refused work of a node. */
export interface LoadFigures {
  readonly limits: {
    readonly reads: Work;
    readonly changes: Work;
    readonly logins: Work;
    readonly forwarding: { readonly unauthenticated: Work; readonly unauthenticatedStreams: Work; readonly streams: Work };
    readonly bodies: { readonly held: number; readonly waiting: number; readonly refused: number };
  };
  readonly connections: { readonly open: number; readonly evicted: number };
  readonly pipelining: { readonly waiting: number; readonly closed: number };
  /** Long responses that their callers have not read. */
  readonly unread: { readonly bytes: number; readonly closed: number };
  /** Gateway threads; absent if the node has none. */
  readonly gateways?: GatewayFigures;
}

export interface GatewayFigures {
  readonly running: number;
  /** Threads that ended and were replaced, since the start. */
  readonly replaced: number;
  /** Requests since the start that gateways answered themselves, and that they passed to the main thread. */
  readonly answered: number;
  readonly passed: number;
}

const noGateways: GatewayFigures = { running: 0, replaced: 0, answered: 0, passed: 0 };

/** Registers the metrics of the in-flight limits and of client connections. */
export function registerLoadMetrics({
  load: { limits, connections, pipelining, unread, gateways = noGateways },
  ...target
}: MetricTarget & {
  readonly load: LoadFigures;
}): void {
  const metric = (type: MetricType, name: string, help: string, value: () => number): void =>
    registerRows(target, { name, help, type }, () => [[undefined, value()]]);
  const metricByKind = (type: MetricType, name: string, help: string, rows: () => readonly MetricRow[]): void =>
    registerRows(target, { name, help, label: 'kind', type }, rows);
  const perKind = (of: (work: Work) => number): readonly MetricRow[] => [
    ['reads', of(limits.reads)],
    ['changes', of(limits.changes)],
    ['logins', of(limits.logins)],
    ['forwarded_unauthenticated', of(limits.forwarding.unauthenticated)],
    ['forwarded_unauthenticated_streams', of(limits.forwarding.unauthenticatedStreams)],
    ['forwarded_streams', of(limits.forwarding.streams)],
  ];
  metricByKind(Gauge, 'core_requests_executing', 'Requests being executed', () => perKind(({ atWork }) => atWork));
  metricByKind(Gauge, 'core_requests_waiting', 'Requests waiting for an in-flight limit', () => [
    ...perKind(({ waiting }) => waiting),
    ['bodies', limits.bodies.waiting],
  ]);
  metricByKind(Counter, 'core_requests_refused', 'Requests refused because an in-flight limit and its queue were full', () => [
    ...perKind(({ refused }) => refused),
    ['bodies', limits.bodies.refused],
  ]);
  metric(Gauge, 'core_body_bytes', 'Memory held by large request bodies, in bytes', () => limits.bodies.held);
  metric(Gauge, 'core_unread_response_bytes', 'Memory held by long responses that are not read, in bytes', () => unread.bytes);
  metric(Counter, 'core_unread_responses_closed', 'Connections closed to make room for other responses', () => unread.closed);
  metric(Gauge, 'core_connections', 'Open client connections', () => connections.open);
  metric(Counter, 'core_connections_evicted', 'Client connections closed to make room for others', () => connections.evicted);
  metric(Gauge, 'core_gateways', 'Number of running gateway threads', () => gateways.running);
  metric(Counter, 'core_gateways_replaced', 'Gateway threads that ended and were replaced', () => gateways.replaced);
  metricByKind(
    Counter,
    'core_gateway_requests',
    'Requests to gateway threads: answered by the gateway itself, or passed to the main thread',
    () => [
      ['answered', gateways.answered],
      ['passed', gateways.passed],
    ],
  );
  metric(
    Gauge,
    'core_requests_pipelined',
    'Requests waiting for an earlier request of their connection',
    () => pipelining.waiting,
  );
  metric(
    Counter,
    'core_connections_closed_pipelining',
    'Client connections closed because too many pipelined requests waited',
    () => pipelining.closed,
  );
}
