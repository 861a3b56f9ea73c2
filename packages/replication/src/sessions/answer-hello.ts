import type { LogIndex } from '@transitd/raft-core';
import { type Cursor, continues, type EpochName, type ReplicationState } from '@transitd/storage-fsm';
import { isSupersededBy } from '../roles/meeting.ts';
import type { Frame, HelloRefusal } from '../stream/frame.ts';

/**
 * `resume`: the stream continues at the cursor. `resynchronize`: the secondary needs the whole state; `diverged` says whether it has
 * something that this history does not contain.
 */
export type HelloAnswer =
  | { readonly kind: 'resume'; readonly from: Cursor }
  | { readonly kind: 'resynchronize'; readonly diverged: boolean }
  | { readonly kind: 'refuse'; readonly reason: HelloRefusal }
  | { readonly kind: 'superseded'; readonly by: EpochName };

/**
 * Decides how the primary answers the hello of a secondary.
 * @param continuesFrom - whether the outcomes after a position are still kept
 */
export function answerHello(
  { set, cursor }: Frame & { kind: 'hello' },
  state: ReplicationState | undefined,
  continuesFrom: (index: LogIndex) => boolean,
): HelloAnswer {
  if (state === undefined || state.set !== set) return { kind: 'refuse', reason: 'other_set' };
  if (cursor !== undefined && isSupersededBy(state, cursor)) return { kind: 'superseded', by: cursor };
  if (state.role === 'superseded') return { kind: 'refuse', reason: 'superseded' };
  if (state.role !== 'primary' && state.role !== 'demoted') return { kind: 'refuse', reason: 'not_primary' };
  if (cursor === undefined) return { kind: 'resynchronize', diverged: false };
  if (!continues(state.epochs, cursor)) return { kind: 'resynchronize', diverged: true };
  return continuesFrom(cursor.index) ? { kind: 'resume', from: cursor } : { kind: 'resynchronize', diverged: false };
}
