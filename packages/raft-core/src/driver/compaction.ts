import type { PeerStatus } from '../core/contract/raft-core.ts';
import type { LogStart } from '../ports.ts';
import type { Entry, LogIndex } from '../types.ts';
import type { DriverLimits } from './limits.ts';

/** Resolution at which bytes are located in the log. */
const STEP_BYTES = 2 ** 18;
/**
 * Minimum amount that a compaction deletes, as a fraction of the amount that makes one due. Each compaction costs syncs, and lagging peers
 * would otherwise permit a small one at every flush.
 */
const WORTH = 1 / 10;

/** A log as it was opened, and the last entry that the state machine had on disk at that time. */
export type StoredLog = Pick<LogStart, 'base' | 'lastIndex' | 'bytes'> & { readonly flushedIndex: LogIndex };

/** Decides how much of the log to delete: flushed entries that followers are unlikely to request. */
export class Compaction {
  readonly #limits: DriverLimits;
  /** Payload bytes of the log up to and including an index, for some indexes; the first one is the log's base. */
  #positions: { readonly index: LogIndex; readonly bytes: number }[];
  #bytes: number;

  constructor(limits: DriverLimits, { base, lastIndex, bytes, flushedIndex }: StoredLog) {
    this.#limits = limits;
    // Unflushed entries are counted when this incarnation applies them. Of the flushed ones only the total is known.
    const flushed = Math.max(0, flushedIndex - base.index);
    this.#bytes = lastIndex === base.index ? 0 : (bytes * flushed) / (lastIndex - base.index);
    const steps = Math.min(flushed, Math.floor(this.#bytes / STEP_BYTES));
    this.#positions = Array.from({ length: steps + 1 }, (_, step) => ({
      index: base.index + (steps === 0 ? 0 : Math.floor((flushed * step) / steps)),
      bytes: steps === 0 ? 0 : (this.#bytes * step) / steps,
    }));
  }

  applied({ index, data }: Entry): void {
    this.#bytes += data.length;
    if (this.#bytes - (this.#positions.at(-1)?.bytes ?? 0) >= STEP_BYTES) this.#positions.push({ index, bytes: this.#bytes });
  }

  /** Returns the entry after which the log should begin, or undefined if no compaction is due. */
  target({
    baseIndex,
    flushedIndex,
    peers,
  }: {
    readonly baseIndex: LogIndex;
    readonly flushedIndex: LogIndex;
    readonly peers: () => readonly PeerStatus[];
  }): LogIndex | undefined {
    const { compactAfterEntries, compactAfterBytes, keepTrailingEntries, keepTrailingBytes } = this.#limits;
    const { keepForPeersEntries, keepForPeersBytes } = this.#limits;
    const firstBytes = this.#positions[0]?.bytes ?? this.#bytes;
    if (flushedIndex - baseIndex <= compactAfterEntries && this.#bytes - firstBytes <= compactAfterBytes) return undefined;
    const trailing = Math.max(flushedIndex - keepTrailingEntries, this.#lastPositionBefore(keepTrailingBytes));
    const wanted = peers()
      .filter(({ active, pendingSnapshot }) => active || pendingSnapshot !== undefined)
      .map(({ match, pendingSnapshot }) => pendingSnapshot ?? match);
    const forPeers = Math.max(
      Math.min(...wanted),
      flushedIndex - Math.max(keepForPeersEntries, keepTrailingEntries),
      this.#lastPositionBefore(Math.max(keepForPeersBytes, keepTrailingBytes)),
    );
    const target = Math.min(trailing, forPeers, flushedIndex);
    const entries = target - baseIndex;
    const bytes = this.#bytesUpTo(target) - firstBytes;
    const isWorth = entries > 0 && (entries >= WORTH * compactAfterEntries || bytes >= WORTH * compactAfterBytes);
    return isWorth ? target : undefined;
  }

  /** Notes that the log begins after `index`: it was compacted, or a snapshot replaced it. */
  noteBase(index: LogIndex): void {
    const kept = this.#positions.filter((position) => position.index > index);
    this.#positions = [{ index, bytes: kept.length === 0 ? this.#bytes : this.#bytesUpTo(index) }, ...kept];
  }

  /** Returns approximately the bytes up to `index`: those up to the last known position at or below it. */
  #bytesUpTo(index: LogIndex): number {
    return this.#positions.findLast((position) => position.index <= index)?.bytes ?? 0;
  }

  /** Returns the last position with more than `bytes` after it. */
  #lastPositionBefore(bytes: number): LogIndex {
    return this.#positions.findLast((position) => this.#bytes - position.bytes > bytes)?.index ?? 0;
  }
}
