/**
 * Memory that the main thread shares with all gateways. Each gateway has a row of its own, and the main thread writes all other words.
 *
 *     words   change counter | seal count | status version | row 0: drained, confirmed seal | row 1: …
 *     longs   offset of the steady clock | lease end | read end | active end | status fields
 */
export interface NodeMemory {
  readonly words: Int32Array<SharedArrayBuffer>;
  readonly longs: BigInt64Array<SharedArrayBuffer>;
}

/** Indexes of the words. */
export const word = { changes: 0, seals: 1, statusVersion: 2 } as const;

/** Indexes of the longs. All times are nanoseconds of `process.hrtime.bigint()`, which is the same clock in every thread. */
export const long = { steadyOffsetNs: 0, leaseEndNs: 1, readEndNs: 2, activeEndNs: 3, status: 4 } as const;

const rowsAt = 3;
const wordsPerRow = 2;
/** Number of longs, with room for the fields of the status. */
const longsCount = long.status + 11;

/** Creates the memory, filled with zeros: the node is sealed, and every deadline is over. @param rows - maximum number of gateways */
export const newNodeMemory = (rows: number): NodeMemory => ({
  words: new Int32Array(new SharedArrayBuffer(4 * (rowsAt + rows * wordsPerRow))),
  longs: new BigInt64Array(new SharedArrayBuffer(8 * longsCount)),
});

/** Returns the index of the word in which the gateway of this row publishes the newest change that it has drained. */
export const drainedWord = (row: number): number => rowsAt + row * wordsPerRow;

/** Returns the index of the word in which the gateway of this row confirms a seal. */
export const confirmedSealWord = (row: number): number => rowsAt + row * wordsPerRow + 1;
