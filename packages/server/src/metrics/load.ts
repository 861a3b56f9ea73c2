import type { Limits } from '@transitd/api';
import { type Connections, reading, unreadResponses } from '@transitd/http';
import { Counter, Gauge } from 'prom-client';
import type { GatewayLoad } from '../gateways/messages.ts';
import { type MetricRow, type MetricTarget, type MetricType, registerRows } from './register.ts';

/** Returns the present load of this thread. */
export function loadOf({ reads, bodies }: Limits, connections: Connections, inFlight: number): GatewayLoad {
  return {
    inFlight,
    reads: { atWork: reads.atWork, waiting: reads.waiting, refused: reads.refused },
    bodies: { held: bodies.held, waiting: bodies.waiting, refused: bodies.refused },
    connections: { open: connections.open, evicted: connections.evicted },
    pipelining: { waiting: reading.waiting, closed: reading.closed },
    unread: { bytes: unreadResponses.bytes, closed: unreadResponses.closed },
  };
}

/** Adds the load of threads. */
export const added = <Load extends object>(one: Load, other: Load): Load =>
  Object.fromEntries(
    Object.entries(one).map(([name, value]) => {
      const more = other[name as keyof Load];
      return [name, typeof value === 'number' ? value + Number(more) : added(value, more as object)];
    }),
  ) as Load;

/** Running, waiting and refused work of a node. */
export interface LoadSources {
  /** Of the main thread, which alone enforces these. */
  readonly limits: Pick<Limits, 'changes' | 'logins' | 'forwarding'>;
  /** Returns the load of all threads. */
  readonly total: () => GatewayLoad;
  /** Gateway threads; undefined if the node has none. */
  readonly gateways: () => GatewayFigures | undefined;
}

export interface GatewayFigures {
  readonly running: number;
  /** Threads that ended and were replaced, since the start. */
  readonly replaced: number;
  /** Requests since the start that gateways answered themselves, and that they passed to the main thread. */
  readonly answered: number;
  readonly passed: number;
}

/** Registers the metrics of the in-flight limits and of client connections. */
export function registerLoadMetrics({
  load: { limits, total, gateways },
  ...target
}: MetricTarget & {
  readonly load: LoadSources;
}): void {
  const metric = (type: MetricType, name: string, help: string, value: () => number): void =>
    registerRows(target, { name, help, type }, () => [[undefined, value()]]);
  const metricByKind = (type: MetricType, name: string, help: string, rows: () => readonly MetricRow[]): void =>
    registerRows(target, { name, help, label: 'kind', type }, rows);
  const perKind = (of: (work: GatewayLoad['reads']) => number): readonly MetricRow[] => [
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
  metricByKind(Counter, 'core_requests_refused', 'Requests refused because an in-flight limit and its queue were full', () => [
    ...perKind(({ refused }) => refused),
    ['bodies', total().bodies.refused],
  ]);
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
