/**
 * The feature level of a cluster: a number in the replicated state that says which formats may be in the log and how entries are applied.
 * It only rises. Each entry is applied under the level that the entries before it have set. So an entry means the same on every node,
 * whatever release the node runs. `docs/upgrades.md` has the rules for developers.
 */
export type FeatureLevel = number;

/**
 * The level from which on each feature may be used. A release adds at most one level, shared by all of its features; a number is never
 * reused. `initial` is the level of a state without a level record, with all features of the first release.
 */
export const featureLevels = { initial: 1 } as const satisfies Readonly<Record<string, FeatureLevel>>;

/** A range of feature levels, both ends included. */
export interface LevelRange {
  readonly oldest: FeatureLevel;
  readonly newest: FeatureLevel;
}

/** The levels under which this program can apply entries. */
export const supportedLevels: LevelRange = {
  oldest: featureLevels.initial,
  newest: Math.max(...Object.values(featureLevels)),
};

/** Returns whether a feature may be used at a level. The level is that of the applied state, or of the entry that is being applied. */
export const hasFeature = (level: FeatureLevel, feature: keyof typeof featureLevels): boolean => level >= featureLevels[feature];

/** The level from which on the log may contain each format of a transaction. The first byte of a transaction is its format. */
const transactionFormats: ReadonlyMap<number, FeatureLevel> = new Map([
  [1, featureLevels.initial], // conditions and writes
  [2, featureLevels.initial], // a step of a restore
  [3, featureLevels.initial], // a raise of the feature level
  [4, featureLevels.initial], // a step of replication
]);

/**
 * Returns whether an entry in this format has an effect at a level. A format that this program does not know belongs to a later level, so
 * the entry has no effect on any node.
 */
export const allowsFormat = (level: FeatureLevel, format: number): boolean =>
  level >= (transactionFormats.get(format) ?? Number.POSITIVE_INFINITY);

/** Thrown when this program cannot run at the feature level of the data. The message is one sentence for the operator. */
export class UnsupportedLevel extends Error {
  override readonly name = 'UnsupportedLevel';

  constructor(level: FeatureLevel, { oldest, newest }: LevelRange, place: string) {
    const remedy =
      level > newest
        ? `run a release that supports level ${level}: a cluster cannot go back below its level`
        : `first run a release that supports level ${level} and a later one, and raise the level`;
    super(`${place} is at feature level ${level}, and this program supports levels ${oldest} to ${newest}: ${remedy}`);
  }
}

/** @param place - the data that has this level; the error text begins with it @throws UnsupportedLevel */
export function requireSupported(level: FeatureLevel, range: LevelRange, place: string): void {
  if (level < range.oldest || level > range.newest) throw new UnsupportedLevel(level, range, place);
}
