import { type RaftLimits, raftLimits } from '../core/limits.ts';

export interface DriverLimits extends RaftLimits {
  /** Proposals taken and not yet answered. */
  readonly inFlightMax: number;
  /** Longest time to apply entries without a look at new input. */
  readonly applyChunkMs: number;
  readonly tickMs: number;
  /** A write to the log that takes longer than this lets committed entries be applied before it ends. */
  readonly applyAheadAfterMs: number;
  /** Bytes applied in memory and not yet flushed; applying waits beyond. */
  readonly unflushedBytesMax: number;
  /** Payload bytes of one read of old entries. */
  readonly logReadBytesMax: number;
  /** The log is compacted when it holds more flushed entries than this, or more bytes of them... */
  readonly compactAfterEntries: number;
  readonly compactAfterBytes: number;
  /** ...down to this many, for followers that are a little behind... */
  readonly keepTrailingEntries: number;
  readonly keepTrailingBytes: number;
  /** ...or to the slowest peer that is heard of, or is being sent a snapshot, as long as that is no more than these. */
  readonly keepForPeersEntries: number;
  readonly keepForPeersBytes: number;
  /** How long a learner must have kept up before it is promoted. */
  readonly promotionStableMs: number;
}

export const driverLimits: DriverLimits = {
  ...raftLimits,
  inFlightMax: 4096,
  applyChunkMs: 5,
  tickMs: 50,
  applyAheadAfterMs: 50,
  unflushedBytesMax: 64 * 2 ** 20,
  logReadBytesMax: 2 ** 20,
  compactAfterEntries: 50_000,
  compactAfterBytes: 64 * 2 ** 20,
  keepTrailingEntries: 10_000,
  keepTrailingBytes: 16 * 2 ** 20,
  keepForPeersEntries: 200_000,
  keepForPeersBytes: 512 * 2 ** 20,
  promotionStableMs: 0,
};
