/** Kinds of actions of the second schedule. */
export const extraKinds = [
  'kill',
  'killThenPowerLoss',
  'changeClockRate',
  'stopClock',
  'hangDiskPart',
  'strangerAnswers',
  'answerToEarlierRun',
  'leaveLastVoter',
  'cutOffOneHalf',
  'installBesideFlush',
  'installBesideMark',
  'abortTransfer',
] as const;
/** Kinds added even later, drawn from a random stream of their own: seeds that do not draw them give the same run as before. */
export const laterKinds = ['appendBesideInstall'] as const;
/** Kinds in which the connections of a leader end, drawn from a third stream. In some of them the leader stays alive. */
export const endingKinds = [
  'killLeader',
  'resetLeader',
  'resetOneSide',
  'resetFollower',
  'resetAndHeard',
  'changeClockRate',
  'kill',
] as const;
export type ExtraKind = (typeof extraKinds)[number] | (typeof laterKinds)[number] | (typeof endingKinds)[number];

/** One step, `afterMs` after the previous one. `pick` chooses nodes when the step is carried out. */
export interface ExtraAction {
  readonly afterMs: number;
  readonly kind: ExtraKind;
  readonly pick: number;
  readonly durationMs: number;
}

/**
 * Faults that were added later. They use a random stream of their own, both to be drawn and while they are carried out, so a configuration
 * without them gives the same run as before they existed.
 */
export interface ExtraFaults {
  /** Seed of the random stream. */
  readonly seed: number;
  /** Maximum duration of an ordinary flush of the state; with 0, the same as for a sync of the log. */
  readonly flushMsMax: number;
  readonly schedule: readonly ExtraAction[];
  /** Whether heartbeats and leases are as short as the product's. Other runs keep the longer ones with which they were recorded. */
  readonly timing?: Timing;
}

export interface Timing {
  readonly heartbeatMs: number;
  /** The lease of each node, by its number; they differ, because no rule may rely on a lease that another leader announced. */
  readonly leasesMs: readonly number[];
}
