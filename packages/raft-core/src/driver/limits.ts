import { type RaftLimits, raftLimits } from '../core/raft.ts';

export interface DriverLimits extends RaftLimits {
  /** Proposals taken and not yet answered. */
  readonly inFlightMax: number;
  /** Longest time to apply entries without a look at new input. */
  readonly applyChunkMs: number;
  readonly tickMs: number;
  /** Bytes applied in memory and not yet flushed; applying waits beyond. */
  readonly unflushedBytesMax: number;
  /** Payload bytes of one read of old entries. */
  readonly logReadBytesMax: number;
  /** The log is compacted when it holds more flushed entries than this... */
  readonly compactAfterEntries: number;
  /** ...down to this many, for followers that are a little behind. */
  readonly keepTrailingEntries: number;
}

export const driverLimits: DriverLimits = {
  ...raftLimits,
  inFlightMax: 4096,
  applyChunkMs: 5,
  tickMs: 50,
  unflushedBytesMax: 64 * 2 ** 20,
  logReadBytesMax: 2 ** 20,
  compactAfterEntries: 50_000,
  keepTrailingEntries: 10_000,
};
