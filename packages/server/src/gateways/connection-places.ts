import type { CommonPlaces } from '@transitd/http';

/**
 * The limit of client connections of all threads. Half of it is divided between the threads: so a caller whose connections are all on one
 * thread, such as the one that serves the telemetry, leaves places on the others. The other half is common: so connections that the kernel
 * spreads unevenly are not closed far below the limit.
 */
export interface ConnectionPlaces {
  /** Number of places of each thread. */
  readonly own: number;
  /** Number of common places. */
  readonly common: number;
  /** Common places that each thread has taken. The main thread has the last row. */
  readonly rows: Int32Array<SharedArrayBuffer>;
}

/** Divides a limit of client connections. @param workers - number of gateways */
export function connectionPlaces(max: number, workers: number): ConnectionPlaces {
  const threads = workers + 1;
  const own = workers === 0 ? max : Math.floor(max / 2 / threads);
  return { own, common: max - threads * own, rows: new Int32Array(new SharedArrayBuffer(4 * threads)) };
}

/** Returns the common places as one thread sees them. @param row - that of a gateway; default: the main thread's */
export const commonPlaces = ({ common, rows }: ConnectionPlaces, row = rows.length - 1): CommonPlaces => ({
  max: common,
  take: (places) => void Atomics.add(rows, row, places),
  get taken() {
    let sum = 0;
    for (let i = 0; i < rows.length; i += 1) sum += Atomics.load(rows, i);
    return sum;
  },
});

/** Frees the common places of a gateway that has ended: its sockets are closed. */
export const freePlaces = ({ rows }: ConnectionPlaces, row: number): void => void Atomics.store(rows, row, 0);
