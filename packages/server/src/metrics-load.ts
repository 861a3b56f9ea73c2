import { Counter, Gauge, type Registry } from 'prom-client';

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
    readonly forwarding: { readonly strangers: Work; readonly strangersStreams: Work; readonly streams: Work };
    readonly bodies: { readonly held: number; readonly waiting: number; readonly refused: number };
  };
  readonly connections: { readonly open: number; readonly cut: number };
  readonly pipelining: { readonly waiting: number; readonly closed: number };
}

/** Registers the metrics of the in-flight limits and of client connections. */
export function registerLoadMetrics({
  prefix,
  registers,
  load: { limits, connections, pipelining },
}: {
  readonly prefix: string;
  readonly registers: Registry[];
  readonly load: LoadFigures;
}): void {
  type Row = readonly [kind: string | undefined, value: number];
  const metric = (
    Type: typeof Gauge<string> | typeof Counter<string>,
    name: string,
    help: string,
    rows: () => readonly Row[],
  ): void => {
    new Type({
      name: `${prefix}_${name}`,
      help,
      registers,
      labelNames: rows().some(([kind]) => kind !== undefined) ? ['kind'] : [],
      collect() {
        this.reset();
        for (const [kind, value] of rows()) this.inc(kind === undefined ? {} : { kind }, value);
      },
    });
  };
  const perKind = (of: (work: Work) => number): readonly Row[] => [
    ['reads', of(limits.reads)],
    ['changes', of(limits.changes)],
    ['logins', of(limits.logins)],
    ['forwarded_unauthenticated', of(limits.forwarding.strangers)],
    ['forwarded_unauthenticated_streams', of(limits.forwarding.strangersStreams)],
    ['forwarded_streams', of(limits.forwarding.streams)],
  ];
  metric(Gauge, 'core_requests_executing', 'Requests being executed', () => perKind(({ atWork }) => atWork));
  metric(Gauge, 'core_requests_waiting', 'Requests waiting for an in-flight limit', () => [
    ...perKind(({ waiting }) => waiting),
    ['bodies', limits.bodies.waiting],
  ]);
  metric(Counter, 'core_requests_refused', 'Requests refused because an in-flight limit and its queue were full', () => [
    ...perKind(({ refused }) => refused),
    ['bodies', limits.bodies.refused],
  ]);
  metric(Gauge, 'core_body_bytes', 'Memory held by large request bodies, in bytes', () => [[undefined, limits.bodies.held]]);
  metric(Gauge, 'core_connections', 'Open client connections', () => [[undefined, connections.open]]);
  metric(Counter, 'core_connections_evicted', 'Client connections closed to make room for others', () => [
    [undefined, connections.cut],
  ]);
  metric(Gauge, 'core_requests_pipelined', 'Requests waiting for an earlier request of their connection', () => [
    [undefined, pipelining.waiting],
  ]);
  metric(
    Counter,
    'core_connections_closed_pipelining',
    'Client connections closed because too many pipelined requests waited',
    () => [[undefined, pipelining.closed]],
  );
}
