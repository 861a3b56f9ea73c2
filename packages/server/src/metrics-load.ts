import { Counter, Gauge, type Registry } from 'prom-client';

interface Work {
  readonly atWork: number;
  readonly waiting: number;
  readonly refused: number;
}

/** What a node has taken on, and what it has refused to. */
export interface LoadFigures {
  readonly limits: {
    readonly reads: Work;
    readonly changes: Work;
    readonly logins: Work;
    readonly forwarding: { readonly strangers: Work; readonly strangersStreams: Work; readonly streams: Work };
    readonly bodies: { readonly held: number; readonly waiting: number; readonly refused: number };
  };
  readonly connections: { readonly open: number; readonly cut: number };
}

/** Figures of the limits on what a node does at a time. */
export function registerLoad({
  prefix,
  registers,
  load: { limits, connections },
}: {
  readonly prefix: string;
  readonly registers: Registry[];
  readonly load: LoadFigures;
}): void {
  type Row = readonly [kind: string | undefined, value: number];
  const figure = (
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
    ['forwarded_strangers', of(limits.forwarding.strangers)],
    ['forwarded_strangers_streams', of(limits.forwarding.strangersStreams)],
    ['forwarded_streams', of(limits.forwarding.streams)],
  ];
  figure(Gauge, 'core_requests_at_work', 'Requests that are worked on', () => perKind(({ atWork }) => atWork));
  figure(Gauge, 'core_requests_waiting', 'Requests that wait until they are worked on', () => [
    ...perKind(({ waiting }) => waiting),
    ['bodies', limits.bodies.waiting],
  ]);
  figure(Counter, 'core_requests_refused', 'Requests refused because the node had too much to do', () => [
    ...perKind(({ refused }) => refused),
    ['bodies', limits.bodies.refused],
  ]);
  figure(Gauge, 'core_body_bytes', 'Bytes of large request bodies that are held', () => [[undefined, limits.bodies.held]]);
  figure(Gauge, 'core_connections', 'Open connections of clients', () => [[undefined, connections.open]]);
  figure(Counter, 'core_connections_cut', 'Connections of clients that were cut to make room for others', () => [
    [undefined, connections.cut],
  ]);
}
