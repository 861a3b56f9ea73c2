import { type RaftLimits, raftLimits } from '../core/contract/limits.ts';

export interface DriverLimits extends RaftLimits {
  /** Maximum number of proposals taken but not yet answered. */
  readonly inFlightMax: number;
  /** Longest time to apply entries without checking for new input. */
  readonly applyChunkMs: number;
  readonly tickMs: number;
  /** While a write to the log takes longer than this, committed entries are applied before it ends. */
  readonly applyAheadAfterMs: number;
  /** Maximum bytes applied in memory but not yet flushed; above it, applying waits for a flush. */
  readonly unflushedBytesMax: number;
  /** Minimum time from the beginning of one flush to that of the next, so that the entries of many turns share a flush. */
  readonly flushIntervalMs: number;
  /** Maximum payload bytes of one read of old entries. */
  readonly logReadBytesMax: number;
  /** The log is compacted when it holds more flushed entries than this, or more than `compactAfterBytes` of them. */
  readonly compactAfterEntries: number;
  readonly compactAfterBytes: number;
  /** Compaction keeps this many entries, or `keepTrailingBytes` of them, for followers that lag a little. */
  readonly keepTrailingEntries: number;
  readonly keepTrailingBytes: number;
  /**
   * Compaction keeps more, but at most this many entries and `keepForPeersBytes`, for the slowest peer that is active or being sent a
   * snapshot.
   */
  readonly keepForPeersEntries: number;
  readonly keepForPeersBytes: number;
  /** How long a learner must keep up before it is promoted. */
  readonly promotionStableMs: number;
}

export const driverLimits: DriverLimits = {
  ...raftLimits,
  inFlightMax: 4096,
  applyChunkMs: 5,
  tickMs: 50,
  applyAheadAfterMs: 50,
  unflushedBytesMax: 64 * 2 ** 20,
  flushIntervalMs: 50,
  logReadBytesMax: 2 ** 20,
  compactAfterEntries: 50_000,
  compactAfterBytes: 64 * 2 ** 20,
  keepTrailingEntries: 10_000,
  keepTrailingBytes: 16 * 2 ** 20,
  keepForPeersEntries: 200_000,
  keepForPeersBytes: 512 * 2 ** 20,
  promotionStableMs: 0,
};
