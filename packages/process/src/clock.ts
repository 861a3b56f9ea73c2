/** The clocks of the machine. A test or a simulation has its own. */
export interface Clock {
  /** Milliseconds since an arbitrary moment. Never goes back, and stands still while the machine is suspended. */
  nowMs(): number;
  /** Milliseconds since 1970 by the wall clock, which may jump. */
  utcMs(): number;
}

/**
 * The clock that dates records and ends their validity. Its time of day has two sources, which may disagree: a token is refused as soon as
 * it has expired by either, and nothing is deleted before both say so.
 */
export interface RecordClock extends Clock {
  /** Milliseconds since 1970 by the source that is ahead: refuses what has expired. */
  utcMs(): number;
  /** Milliseconds since 1970 by the source that is behind: dates records, deletes, and does what must not happen too early. */
  dueMs(): number;
}

export const systemClock: RecordClock = { nowMs: () => performance.now(), utcMs: () => Date.now(), dueMs: () => Date.now() };
