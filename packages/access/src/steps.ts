import { TimeSlice } from './time-slice.ts';

/** Work in short steps: it pauses after each, and goes on at once or after others have had their turn. */
export type Steps<T> = Generator<undefined, T>;

/** Does all steps at once. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Does the steps in slices of time. */
export async function inTurns<T>(steps: Steps<T>, slice = new TimeSlice()): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (slice.isOver) await slice.next();
  }
}
