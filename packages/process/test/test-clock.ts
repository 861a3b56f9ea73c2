import type { RecordClock } from '../src/clock.ts';

/** A clock that a test sets. */
export class TestClock implements RecordClock {
  ms = 0;

  nowMs(): number {
    return this.ms;
  }

  utcMs(): number {
    return 1_000_000 + this.ms;
  }

  dueMs(): number {
    return this.utcMs();
  }
}

/** Returns a clock whose every reading is this time. @param dueMs - the source that is behind */
export const clockOf = (ms: () => number, dueMs = ms): RecordClock => ({ nowMs: ms, utcMs: ms, dueMs });
