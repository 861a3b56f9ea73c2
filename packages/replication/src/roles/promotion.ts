import type { LogIndex } from '@transitd/raft-core';
import { type Cursor, cursorOf, type ReplicationState, sameEpoch } from '@transitd/storage-fsm';
import { type FenceSettings, fenceWaitMs } from './fence.ts';

/** The facts of a secondary's active node when an operator asks for a promotion. */
export interface PromotionFacts {
  readonly state: ReplicationState;
  /** Time since the primary was last heard, at least since this node became active. */
  readonly silentMs: number;
  /** Time since this cluster last answered a heartbeat, at least since this node became active. */
  readonly unansweredMs: number;
  /** The primary counts as alive if it was heard less than this long ago. */
  readonly recentMs: number;
  readonly fence: FenceSettings | undefined;
  /** The fence of the primary counts this secondary: it has answered a hello of this cluster in which this cluster had a state. */
  readonly isCounted: boolean;
  /** The last position of which the primary has told, and whether it has stopped its writes there. */
  readonly primary: { readonly at: Cursor; readonly demoted: boolean } | undefined;
  /** The operator accepts what `primary_alive`, `behind`, `superseded` and `not_counted` warn of. */
  readonly force: boolean;
}

export type PromotionRefusal = 'not_secondary' | 'no_state' | 'primary_alive' | 'behind' | 'superseded' | 'not_counted';

export type PromotionDecision =
  /**
   * `missing`: how many entries of the primary are known to be lost, at least; `lossless` only if the primary has stopped its writes at
   * exactly this position. Otherwise entries may be lost of which this cluster never heard.
   */
  | { readonly kind: 'promote'; readonly from: Cursor; readonly lossless: boolean; readonly missing: LogIndex }
  /** Ask again after this time: the fence has to close first. While it waits, the node answers no heartbeats. */
  | { readonly kind: 'wait'; readonly waitMs: number }
  | { readonly kind: 'refuse'; readonly reason: PromotionRefusal };

/**
 * Decides on a promotion. Only `force` overrides a primary that is alive or is ahead, and nothing shortens the wait for the fence: with a
 * fence there are never two clusters that accept writes. A secondary that the primary does not count yet could be promoted while the
 * primary writes; `force` permits that, because the primary may be lost for good.
 */
export function promotionOf(facts: PromotionFacts): PromotionDecision {
  const { state, silentMs, unansweredMs, recentMs, fence, isCounted, primary, force } = facts;
  const from = cursorOf(state);
  if (state.role === 'primary' || state.role === 'disabled') return { kind: 'refuse', reason: 'not_secondary' };
  if (from === undefined) return { kind: 'refuse', reason: 'no_state' };
  if (state.role === 'superseded' && !force) return { kind: 'refuse', reason: 'superseded' };
  const known = primary !== undefined && sameEpoch(primary.at, from) ? primary : undefined;
  const missing = Math.max(0, (known?.at.index ?? 0) - from.index);
  const hasStopped = known?.demoted === true;
  if (hasStopped && missing === 0) return { kind: 'promote', from, lossless: true, missing };
  if (hasStopped && !force) return { kind: 'refuse', reason: 'behind' };
  // A cluster that was the primary itself has promised nothing to anyone by its silence.
  const follows = state.role === 'secondary';
  if (follows && !force && silentMs < recentMs) return { kind: 'refuse', reason: 'primary_alive' };
  if (follows && !force && !hasStopped && fence !== undefined && !isCounted) return { kind: 'refuse', reason: 'not_counted' };
  const waitMs = hasStopped ? 0 : fenceWaitMs(fence, unansweredMs);
  return waitMs > 0 ? { kind: 'wait', waitMs } : { kind: 'promote', from, lossless: state.role === 'demoted', missing };
}
