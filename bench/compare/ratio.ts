/** The median of ratios with a 95 % interval. */
export interface Ratio {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Compares measurements that were made in pairs, so that a disturbance of the machine concerns both of a pair. The interval of the median
 * comes from the order of the ratios alone (sign test); it needs at least six pairs.
 */
export function ratioOf(ours: readonly number[], theirs: readonly number[]): Ratio {
  const ratios = ours.map((value, at) => value / (theirs[at] ?? Number.NaN)).sort((one, other) => one - other);
  const count = ratios.length;
  const at = (place: number): number => ratios[place] ?? Number.NaN;
  const median = (at(Math.floor((count - 1) / 2)) + at(Math.ceil((count - 1) / 2))) / 2;
  const outside = signTestRank(count);
  return { median, low: at(outside), high: at(count - 1 - outside) };
}

/** Returns how many ratios at each end the 95 % interval of the median leaves out. */
function signTestRank(count: number): number {
  let probability = 0.5 ** count;
  let sum = probability;
  let rank = 0;
  for (; ; rank++) {
    probability *= (count - rank) / (rank + 1);
    if (sum + probability > 0.025) return rank;
    sum += probability;
  }
}
