import { type RaftLimits, raftLimits } from '../core/contract/limits.ts';

export interface DriverLimits extends RaftLimits {
  /** Limit of proposals taken and not yet answered. */
  readonly inFlightMax: number;
  /** Longest time to apply entries without checking for new input. */
  readonly applyChunkMs: number;
  readonly tickMs: number;
  /** While a write to the log takes longer than this, committed entries are applied before it ends. */
  readonly applyAheadAfterMs: number;
  /** Limit of bytes applied in memory and not yet flushed; applying waits above it. */
  readonly unflushedBytesMax: number;
  /** Limit of payload bytes of one read of old entries. */
  readonly logReadBytesMax: number;
  /** The log is compacted when it holds more flushed entries than this, or more bytes of them... */
  readonly compactAfterEntries: number;
  readonly compactAfterBytes: number;
  /** ...down to this many, for followers that lag a little... */
  readonly keepTrailingEntries: number;
  readonly keepTrailingBytes: number;
  /** ...or to the slowest peer that is active or being sent a snapshot, as long as that keeps no more than these. */
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
  logReadBytesMax: 2 ** 20,
  compactAfterEntries: 50_000,
  compactAfterBytes: 64 * 2 ** 20,
  keepTrailingEntries: 10_000,
  keepTrailingBytes: 16 * 2 ** 20,
  keepForPeersEntries: 200_000,
  keepForPeersBytes: 512 * 2 ** 20,
  promotionStableMs: 0,
};
