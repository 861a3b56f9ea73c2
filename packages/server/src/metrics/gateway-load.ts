import type { Limits } from '@transitd/api';
import { type Connections, reading, unreadResponses } from '@transitd/http';
import type { GatewayLoad } from '../gateways/messages.ts';
import type { GatewayFigures, LoadFigures } from './load.ts';

interface GatewaySources extends GatewayFigures {
  /** The newest reports. */
  readonly loads: readonly GatewayLoad[];
}

/** Returns the present load of this thread. */
export function loadOf(limits: Limits, connections: Connections, inFlight: number): GatewayLoad {
  const { reads, bodies } = limits;
  return {
    inFlight,
    reads: { atWork: reads.atWork, waiting: reads.waiting, refused: reads.refused },
    bodies: { held: bodies.held, waiting: bodies.waiting, refused: bodies.refused },
    connections: { open: connections.open, evicted: connections.evicted },
    pipelining: { waiting: reading.waiting, closed: reading.closed },
    unread: { bytes: unreadResponses.bytes, closed: unreadResponses.closed },
  };
}

/** Returns figures that add the newest reports of the gateways to those of the main thread. */
export function totalLoad(main: LoadFigures, gateways: () => GatewaySources | undefined): LoadFigures {
  const sum = (own: number, of: (load: GatewayLoad) => number): number =>
    (gateways()?.loads ?? []).reduce((total, report) => total + of(report), own);
  const { limits, connections, pipelining, unread } = main;
  const { reads, bodies } = limits;
  return {
    limits: {
      changes: limits.changes,
      logins: limits.logins,
      forwarding: limits.forwarding,
      reads: {
        get atWork() {
          return sum(reads.atWork, (load) => load.reads.atWork);
        },
        get waiting() {
          return sum(reads.waiting, (load) => load.reads.waiting);
        },
        get refused() {
          return sum(reads.refused, (load) => load.reads.refused);
        },
      },
      bodies: {
        get held() {
          return sum(bodies.held, (load) => load.bodies.held);
        },
        get waiting() {
          return sum(bodies.waiting, (load) => load.bodies.waiting);
        },
        get refused() {
          return sum(bodies.refused, (load) => load.bodies.refused);
        },
      },
    },
    connections: {
      get open() {
        return sum(connections.open, (load) => load.connections.open);
      },
      get evicted() {
        return sum(connections.evicted, (load) => load.connections.evicted);
      },
    },
    pipelining: {
      get waiting() {
        return sum(pipelining.waiting, (load) => load.pipelining.waiting);
      },
      get closed() {
        return sum(pipelining.closed, (load) => load.pipelining.closed);
      },
    },
    unread: {
      get bytes() {
        return sum(unread.bytes, (load) => load.unread.bytes);
      },
      get closed() {
        return sum(unread.closed, (load) => load.unread.closed);
      },
    },
    gateways: {
      get running() {
        return gateways()?.running ?? 0;
      },
      get replaced() {
        return gateways()?.replaced ?? 0;
      },
      get answered() {
        return gateways()?.answered ?? 0;
      },
      get passed() {
        return gateways()?.passed ?? 0;
      },
    },
  };
}
