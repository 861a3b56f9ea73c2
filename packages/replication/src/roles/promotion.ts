import type { LogIndex } from '@transitd/raft-core';
import { type Cursor, cursorOf, type ReplicationState, sameEpoch } from '@transitd/storage-fsm';
import { type FenceSettings, fenceWaitMs } from './fence.ts';

/** The position of a primary, as it reports it to a secondary. */
export interface ReportedPosition {
  readonly at: Cursor;
  /** The primary has stopped its writes at this position. */
  readonly demoted: boolean;
  /** As in the state of the primary. */
  readonly restoredAt?: LogIndex | undefined;
}

/** The knowledge of a secondary's active node when an operator asks for a promotion. */
export interface PromotionFacts {
  readonly state: ReplicationState;
  /** Time since the primary was last heard, or since this node became active if that was later. */
  readonly silentMs: number;
  /** Time since this cluster last answered a heartbeat, or since this node became active if that was later. */
  readonly unansweredMs: number;
  /** If the primary was heard within this time, it counts as alive. */
  readonly recentMs: number;
  readonly fence: FenceSettings | undefined;
  /**
   * Whether this secondary counts: its primary waits for it, and it has everything that the primary had used before that. Until then it
   * cannot know for what the primary waits, because the settings in its state may be older.
   */
  readonly isCounted: boolean;
  /** False if this cluster leaves the set: the primary goes on, and its key material stays in use there. */
  readonly isPromotion: boolean;
  /** The last position that the primary reported. */
  readonly primary: ReportedPosition | undefined;
  /** True if the operator accepts the risks that the reasons of a refusal name, except `not_secondary` and `no_state`. */
  readonly force: boolean;
}

export type PromotionRefusal =
  | 'not_secondary'
  | 'no_state'
  | 'primary_alive'
  | 'behind'
  | 'misses_restore'
  | 'superseded'
  | 'not_counted';

export type PromotionDecision =
  /**
   * `missing`: the minimum number of the primary's entries that are lost. `lossless`: the primary has stopped its writes at exactly this
   * position. If it is false, entries that this cluster never heard of may be lost too. `missesRestore`: the primary was restored from a
   * backup, and this cluster has the state from before.
   */
  | {
      readonly kind: 'promote';
      readonly from: Cursor;
      readonly lossless: boolean;
      readonly missing: LogIndex;
      readonly missesRestore: boolean;
    }
  /** Decide again after this time, when the primary's fence has closed. Until then this node answers no heartbeats. */
  | { readonly kind: 'wait'; readonly waitMs: number }
  | { readonly kind: 'refuse'; readonly reason: PromotionRefusal };

/**
 * Decides on a promotion. If the primary is alive or is ahead, only `force` allows it. Nothing shortens the wait for the fence, so that two
 * clusters with a fence never both accept writes. A secondary that does not count yet may be promoted while the primary writes, or without
 * key material that was used; `force` permits that, because the primary may be lost for good.
 */
export function promotionOf(facts: PromotionFacts): PromotionDecision {
  const { state, silentMs, unansweredMs, recentMs, fence, isCounted, isPromotion, primary, force } = facts;
  const from = cursorOf(state);
  if (state.role === 'primary' || state.role === 'disabled') return { kind: 'refuse', reason: 'not_secondary' };
  if (from === undefined) return { kind: 'refuse', reason: 'no_state' };
  // A superseded cluster that follows another one may not have received the later epoch yet. If it counts, the later epoch was its own, and
  // its promotion was undone.
  const isSuperseded = state.role === 'superseded' || (state.seen > from.number && !isCounted);
  if (isSuperseded && !force) return { kind: 'refuse', reason: 'superseded' };
  const known = primary !== undefined && sameEpoch(primary.at, from) ? primary : undefined;
  const missing = Math.max(0, (known?.at.index ?? 0) - from.index);
  const isBefore = isBeforeRestore(from, primary);
  const hasStopped = known?.demoted === true;
  // A former primary follows no cluster, so a short silence does not mean that another primary is alive.
  const follows = state.role === 'secondary';
  // A primary that has stopped may be promoted again, and would not wait for this cluster either.
  const isUnknown = follows && !isCounted && (isPromotion || fence !== undefined);
  if (isUnknown && !force) return { kind: 'refuse', reason: 'not_counted' };
  if (hasStopped && missing === 0) return { kind: 'promote', from, lossless: true, missing, missesRestore: false };
  if (hasStopped && !force) return { kind: 'refuse', reason: 'behind' };
  if (follows && !force && !hasStopped && silentMs < recentMs) return { kind: 'refuse', reason: 'primary_alive' };
  if (isBefore && !force) return { kind: 'refuse', reason: 'misses_restore' };
  const waitMs = hasStopped ? 0 : fenceWaitMs(fence, unansweredMs);
  return waitMs > 0
    ? { kind: 'wait', waitMs }
    : { kind: 'promote', from, lossless: state.role === 'demoted', missing, missesRestore: isBefore };
}

/** Returns whether a backup has replaced the records of the primary after the position of this cluster, which has those from before. */
export const isBeforeRestore = (own: Cursor, primary: ReportedPosition | undefined): boolean =>
  primary !== undefined && sameEpoch(primary.at, own) && (primary.restoredAt ?? 0) > own.index;
