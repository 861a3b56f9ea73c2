import type { Count } from '@transitd/http';

/** The limit of client connections of all threads, and the memory in which each thread counts its own. The main thread has the last row. */
export interface ConnectionCounts {
  readonly max: number;
  readonly rows: Int32Array<SharedArrayBuffer>;
}

/** Returns zero connections of each thread. @param workers - number of gateways */
export const newConnectionCounts = (max: number, workers: number): ConnectionCounts => ({
  max,
  rows: new Int32Array(new SharedArrayBuffer(4 * (workers + 1))),
});

/** Returns the count of one thread. @param row - that of a gateway; default: the main thread's */
export const connectionCount = ({ rows }: ConnectionCounts, row = rows.length - 1): Count => ({
  add: (change) => void Atomics.add(rows, row, change),
  get sum() {
    let sum = 0;
    for (let i = 0; i < rows.length; i += 1) sum += Atomics.load(rows, i);
    return sum;
  },
});

/** Forgets the connections of a gateway that has ended: its sockets are closed. */
export const clearConnections = ({ rows }: ConnectionCounts, row: number): void => void Atomics.store(rows, row, 0);
