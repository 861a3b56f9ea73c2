import { TimeSlice } from './time-slice.ts';

/** Work in short steps. The work yields after each step; the caller decides when it continues. */
export type Steps<T> = Generator<undefined, T>;

/** Runs all steps without a pause and returns the result. */
export function runAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Runs the steps in time slices, so that other work gets its turn in between. */
export async function runInSlices<T>(steps: Steps<T>, slice = new TimeSlice()): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (slice.isOver) await slice.next();
  }
}

/** Number of strings to sort in one step, which takes about a millisecond. */
const runLength = 4096;

/** Sorts strings by their code units, as `Array.prototype.sort` does. */
export function* sorted(texts: readonly string[]): Steps<string[]> {
  let runs: string[][] = [];
  for (let at = 0; at < texts.length; at += runLength) {
    runs.push(texts.slice(at, at + runLength).sort());
    yield;
  }
  while (runs.length > 1) {
    const longer: string[][] = [];
    for (let at = 0; at < runs.length; at += 2) longer.push(yield* mergedRuns(runs[at] ?? [], runs[at + 1] ?? []));
    runs = longer;
  }
  return runs[0] ?? [];
}

function* mergedRuns(one: readonly string[], other: readonly string[]): Steps<string[]> {
  const all: string[] = [];
  let [left, right] = [0, 0];
  while (left < one.length || right < other.length) {
    const [first, second] = [one[left], other[right]];
    if (second === undefined || (first !== undefined && first <= second)) {
      all.push(first ?? '');
      left += 1;
    } else {
      all.push(second);
      right += 1;
    }
    if (all.length % runLength === 0) yield;
  }
  return all;
}
