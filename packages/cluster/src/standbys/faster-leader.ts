import type { NodeId } from '@transitd/raft-core';

/** How many times faster another disk has to be. */
const timesFaster = 3;
/** For how long it has to be so, without a break. */
const fasterForMs = 30_000;
/** Between two transfers for this reason, counting those by which this node came to lead. */
const betweenTransfersMs = 10 * 60_000;
/** Up to here this node's own disk is fast enough: a transfer refuses writes for a moment, which would cost more than it saves. */
const fastEnoughMs = 20;

/** A voter that could lead now. */
export interface Candidate {
  readonly id: NodeId;
  /** Median of what a write to its log has taken of late, in ms; undefined where it has not said. */
  readonly writeMs: number | undefined;
}

/**
 * Decides when a leader with a slow disk gives the leadership to a voter with a faster one. Every write waits for the leader's event loop
 * and, where only one other voter answers, for its disk. All times are readings of one monotonic clock, in ms.
 */
export class FasterLeader {
  /** Since when each voter has been so much faster than this node. */
  #fasterSinceMs = new Map<NodeId, number>();
  #transferredMs = Number.NEGATIVE_INFINITY;

  /** This node begins to lead. @param byTransfer - the leader before it gave it the leadership */
  begins({ nowMs, byTransfer }: { readonly nowMs: number; readonly byTransfer: boolean }): void {
    this.#fasterSinceMs.clear();
    if (byTransfer) this.#transferredMs = nowMs;
  }

  /** The voter that is to lead instead; undefined for nobody. Asked every few seconds while this node leads. */
  heir({
    nowMs,
    writeMs,
    candidates,
  }: {
    readonly nowMs: number;
    readonly writeMs: number | undefined;
    readonly candidates: readonly Candidate[];
  }): NodeId | undefined {
    const before = this.#fasterSinceMs;
    const isFaster = ({ writeMs: theirs }: Candidate): boolean =>
      theirs !== undefined && writeMs !== undefined && writeMs > fastEnoughMs && timesFaster * theirs <= writeMs;
    const faster = candidates.filter(isFaster);
    this.#fasterSinceMs = new Map(faster.map(({ id }) => [id, before.get(id) ?? nowMs]));
    if (nowMs < this.#transferredMs + betweenTransfersMs) return undefined;
    const lasting = faster.filter(({ id }) => (this.#fasterSinceMs.get(id) ?? nowMs) <= nowMs - fasterForMs);
    return lasting.sort((a, b) => (a.writeMs ?? 0) - (b.writeMs ?? 0) || a.id - b.id)[0]?.id;
  }

  /** The leadership is being transferred for this reason, whether or not that succeeds. */
  transferred(nowMs: number): void {
    this.#transferredMs = nowMs;
    this.#fasterSinceMs.clear();
  }
}
