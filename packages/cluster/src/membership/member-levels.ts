import { type FeatureLevel, featureLevels, type LevelRange } from '@transitd/storage-fsm';
import { z } from 'zod';

const level = z
  .int()
  .min(featureLevels.initial)
  .max(2 ** 32 - 1);

/** A range of feature levels as members announce it. */
export const levelRange = z.object({ oldest: level, newest: level }).refine(({ oldest, newest }) => oldest <= newest);

/** The levels of a release that supports only the initial one. */
export const initialLevels: LevelRange = { oldest: featureLevels.initial, newest: featureLevels.initial };

/** Returns whether a node with this range can be a member of a cluster at this level. */
export const supportsLevel = ({ oldest, newest }: LevelRange, at: FeatureLevel): boolean => oldest <= at && at <= newest;

/** Returns a range in words, such as "level 1" or "levels 1 to 3". */
export const levelsText = ({ oldest, newest }: LevelRange): string =>
  oldest === newest ? `level ${oldest}` : `levels ${oldest} to ${newest}`;
