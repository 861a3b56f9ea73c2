import type { PeerStatus } from '../core/raft-core.ts';
import type { Entry, LogIndex } from '../types.ts';
import type { DriverLimits } from './limits.ts';

/** How finely bytes are located in the log. */
const MARK_BYTES = 2 ** 18;

/** Decides how much of the log may be forgotten: what is flushed, beyond what followers are likely to ask for. */
export class Compaction {
  readonly #limits: DriverLimits;
  /** Payload bytes applied in this run up to and including an index, every now and then. */
  #marks: { readonly index: LogIndex; readonly bytes: number }[] = [];
  #bytes = 0;

  constructor(limits: DriverLimits) {
    this.#limits = limits;
  }

  applied({ index, data }: Entry): void {
    this.#bytes += data.length;
    if (this.#bytes - (this.#marks.at(-1)?.bytes ?? 0) >= MARK_BYTES) this.#marks.push({ index, bytes: this.#bytes });
  }

  /** The entry to begin the log after, or undefined while it is fine as it is. */
  target({
    baseIndex,
    flushedIndex,
    peers,
  }: {
    readonly baseIndex: LogIndex;
    readonly flushedIndex: LogIndex;
    readonly peers: () => readonly PeerStatus[];
  }): LogIndex | undefined {
    const { compactAfterEntries, compactAfterBytes, keepTrailingEntries, keepForPeersEntries } = this.#limits;
    const firstBytes = this.#marks[0]?.bytes ?? this.#bytes;
    if (flushedIndex - baseIndex <= compactAfterEntries && this.#bytes - firstBytes <= compactAfterBytes) return undefined;
    const trailing = Math.max(flushedIndex - keepTrailingEntries, this.#fewBytesBehind());
    const wanted = peers()
      .filter(({ active, pendingSnapshot }) => active || pendingSnapshot !== undefined)
      .map(({ match, pendingSnapshot }) => pendingSnapshot ?? match);
    const forPeers = Math.max(Math.min(...wanted), flushedIndex - Math.max(keepForPeersEntries, keepTrailingEntries));
    const target = Math.min(trailing, forPeers, flushedIndex);
    return target > baseIndex ? target : undefined;
  }

  compacted(index: LogIndex): void {
    this.#marks = this.#marks.filter((mark) => mark.index >= index);
  }

  /** The last index behind which no more than the trailing bytes lie, as far as this run knows. */
  #fewBytesBehind(): LogIndex {
    const keptFrom = this.#marks.findLastIndex(({ bytes }) => this.#bytes - bytes > this.#limits.keepTrailingBytes);
    return this.#marks[keptFrom]?.index ?? 0;
  }
}
