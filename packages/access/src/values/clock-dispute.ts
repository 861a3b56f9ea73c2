/** A source of the time of day: the wall clock, or its last trusted time plus the time that the monotonic clock has counted since. */
export type TimeSource = 'wall' | 'steady';

/** The two clocks of the node disagree. */
export interface ClockDispute {
  /** How far the later clock is ahead of the earlier one, in ms; positive. */
  readonly differenceMs: number;
  readonly earlier: TimeSource;
}

/** Reports disagreements of the node's clocks. */
export interface ClockDisputes {
  /** Returns the present dispute; undefined while the clocks agree. */
  current(): ClockDispute | undefined;
  /**
   * Reports, when a dispute ends, which of the two clocks was right, and how far the wall clock was ahead then, in ms; negative if it was
   * behind. The wall clock may have been set again since the dispute began. Returns a function that ends the reports.
   */
  onDecided(listener: (right: TimeSource, aheadMs: number) => void): () => void;
}

/** For a node with one clock. */
export const noDisputes: ClockDisputes = { current: () => undefined, onDecided: () => () => undefined };
