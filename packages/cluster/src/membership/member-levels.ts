import { type FeatureLevel, featureLevels, type LevelRange } from '@transitd/storage-fsm';
import { z } from 'zod';

const level = z
  .int()
  .min(featureLevels.initial)
  .max(2 ** 32 - 1);

/** A range of feature levels as members announce it. */
export const levelRange = z.object({ oldest: level, newest: level }).refine(({ oldest, newest }) => oldest <= newest);

/** The levels of a member that never announced any: a release that knows no feature level supports only the initial one. */
export const unannouncedLevels: LevelRange = { oldest: featureLevels.initial, newest: featureLevels.initial };

/** Returns the levels in the newest heartbeat of a member, which may come from such a release; undefined without a heartbeat. */
export const announcedLevels = (report: { readonly levels?: LevelRange | undefined } | undefined): LevelRange | undefined =>
  report && (report.levels ?? unannouncedLevels);

/** Returns whether a node with this range can be a member of a cluster at this level. */
export const supportsLevel = ({ oldest, newest }: LevelRange, at: FeatureLevel): boolean => oldest <= at && at <= newest;

/** Returns a range in words, such as "level 1" or "levels 1 to 3". */
export const levelsText = ({ oldest, newest }: LevelRange): string =>
  oldest === newest ? `level ${oldest}` : `levels ${oldest} to ${newest}`;
