import type { Limits } from '@transitd/api';
import { type Connections, reading, unreadResponses } from '@transitd/http';

/** Returns the work, connections and memory of this thread. */
export function loadOf({ reads, bodies }: Limits, connections: Connections, inFlight: number) {
  return {
    inFlight,
    reads: { atWork: reads.atWork, waiting: reads.waiting, refused: reads.refused },
    bodies: { held: bodies.held, waiting: bodies.waiting, refused: bodies.refused },
    connections: { open: connections.open, evicted: connections.evicted },
    pipelining: { waiting: reading.waiting, closed: reading.closed },
    unread: { bytes: unreadResponses.bytes, closed: unreadResponses.closed },
  };
}

export type ThreadLoad = ReturnType<typeof loadOf>;

/** Adds the load of threads. */
export const added = <Load extends object>(one: Load, other: Load): Load =>
  Object.fromEntries(
    Object.entries(one).map(([name, value]) => {
      const more = other[name as keyof Load];
      return [name, typeof value === 'number' ? value + Number(more) : added(value, more as object)];
    }),
  ) as Load;
