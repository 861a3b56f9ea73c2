import type { Limits } from '@transitd/api';
import { Counter, Gauge } from 'prom-client';
import type { Gateways } from '../gateways/gateways.ts';
import type { ThreadLoad } from '../gateways/thread-load.ts';
import { type MetricRow, type MetricTarget, type MetricType, registerRows } from './register.ts';

/** Running, waiting and refused work of a node. */
export interface LoadSources {
  /** Of the main thread, which alone enforces these. */
  readonly limits: Pick<Limits, 'changes' | 'logins' | 'forwarding'>;
  /** Returns the load of all threads. */
  readonly total: () => ThreadLoad;
  /** Gateway threads; undefined if the node has none. */
  readonly gateways: () => GatewayFigures | undefined;
}

/** Present and past gateway threads. */
type GatewayFigures = Pick<Gateways, 'running' | 'replaced' | 'answered' | 'passed'>;

/** Registers the metrics of the in-flight limits and of client connections. */
export function registerLoadMetrics(target: MetricTarget, { limits, total, gateways }: LoadSources): void {
  const metric = (type: MetricType, name: string, help: string, value: () => number): void =>
    registerRows(target, { name, help, type }, () => [[undefined, value()]]);
  const metricByKind = (type: MetricType, name: string, help: string, rows: () => readonly MetricRow[]): void =>
    registerRows(target, { name, help, label: 'kind', type }, rows);
  const perKind = (of: (work: ThreadLoad['reads']) => number): readonly MetricRow[] => [
    ['reads', of(total().reads)],
    ['changes', of(limits.changes)],
    ['logins', of(limits.logins)],
    ['forwarded_unauthenticated', of(limits.forwarding.unauthenticated)],
    ['forwarded_unauthenticated_streams', of(limits.forwarding.unauthenticatedStreams)],
    ['forwarded_streams', of(limits.forwarding.streams)],
  ];
  metricByKind(Gauge, 'core_requests_executing', 'Requests being executed', () => perKind(({ atWork }) => atWork));
  metricByKind(Gauge, 'core_requests_waiting', 'Requests waiting for an in-flight limit', () => [
    ...perKind(({ waiting }) => waiting),
    ['bodies', total().bodies.waiting],
  ]);
  metricByKind(
    Counter,
    'core_requests_refused',
    'Requests refused because the queue for a limit was full, or they waited too long in it',
    () => [...perKind(({ refused }) => refused), ['bodies', total().bodies.refused]],
  );
  metric(Gauge, 'core_body_bytes', 'Memory held by large request bodies, in bytes', () => total().bodies.held);
  metric(
    Gauge,
    'core_unread_response_bytes',
    'Memory held by long responses that are not read, in bytes',
    () => total().unread.bytes,
  );
  metric(
    Counter,
    'core_unread_responses_closed',
    'Connections closed to make room for other responses',
    () => total().unread.closed,
  );
  metric(Gauge, 'core_connections', 'Open client connections', () => total().connections.open);
  metric(
    Counter,
    'core_connections_evicted',
    'Client connections closed to make room for others',
    () => total().connections.evicted,
  );
  metric(Gauge, 'core_gateways', 'Number of running gateway threads', () => gateways()?.running ?? 0);
  metric(Counter, 'core_gateways_replaced', 'Gateway threads that ended and were replaced', () => gateways()?.replaced ?? 0);
  metricByKind(
    Counter,
    'core_gateway_requests',
    'Requests to gateway threads: answered by the gateway itself, or passed to the main thread',
    () => [
      ['answered', gateways()?.answered ?? 0],
      ['passed', gateways()?.passed ?? 0],
    ],
  );
  metric(
    Gauge,
    'core_requests_pipelined',
    'Requests waiting for an earlier request of their connection',
    () => total().pipelining.waiting,
  );
  metric(
    Counter,
    'core_connections_closed_pipelining',
    'Client connections closed because too many pipelined requests waited',
    () => total().pipelining.closed,
  );
}
