import type { LogIndex } from '@transitd/raft-core';
import { type Cursor, continues, type EpochName, type FeatureLevel, type ReplicationState } from '@transitd/storage-fsm';
import { judgeClaim } from '../roles/meeting.ts';
import type { Frame, HelloRefusal } from '../stream/frame.ts';

/**
 * `resume`: the stream continues at the cursor. `resynchronize`: the secondary needs the whole state; `diverged` is true if it has entries
 * that this history does not contain.
 */
type HelloAnswer =
  | { readonly kind: 'resume'; readonly from: Cursor }
  | { readonly kind: 'resynchronize'; readonly diverged: boolean }
  | { readonly kind: 'refuse'; readonly reason: HelloRefusal }
  | { readonly kind: 'superseded'; readonly by: EpochName };

/** The facts of a primary's active node when a secondary says hello. */
interface HelloFacts {
  readonly state: ReplicationState | undefined;
  /** The feature level of the primary. */
  readonly level: FeatureLevel;
  /** Returns whether the outcomes after a position are still kept. */
  readonly continuesFrom: (index: LogIndex) => boolean;
  /** The key of the set; undefined if this cluster cannot read it. */
  readonly successionKey: Uint8Array | undefined;
}

/** Decides how the primary answers the hello of a secondary. */
export function answerHello(
  { set, cursor, wantsWholeState, level: secondaryLevel, proof }: Frame & { kind: 'hello' },
  { state, level, continuesFrom, successionKey }: HelloFacts,
): HelloAnswer {
  if (state === undefined || state.set !== set) return { kind: 'refuse', reason: 'other_set' };
  const claim = cursor === undefined ? 'none' : judgeClaim(state, { set, epoch: cursor, proof }, successionKey);
  if (cursor !== undefined && claim === 'proven') return { kind: 'superseded', by: cursor };
  if (claim === 'unproven') return { kind: 'refuse', reason: 'unproven' };
  if (state.role === 'superseded') return { kind: 'refuse', reason: 'superseded' };
  if (state.role !== 'primary' && state.role !== 'demoted') return { kind: 'refuse', reason: 'not_primary' };
  if (secondaryLevel < level) return { kind: 'refuse', reason: 'level' };
  if (cursor === undefined) return { kind: 'resynchronize', diverged: false };
  if (!continues(state.epochs, cursor)) return { kind: 'resynchronize', diverged: true };
  return !wantsWholeState && continuesFrom(cursor.index)
    ? { kind: 'resume', from: cursor }
    : { kind: 'resynchronize', diverged: false };
}
