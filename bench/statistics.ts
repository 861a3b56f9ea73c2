/** Returns the median; not a number without values. */
export function median(values: readonly number[]): number {
  const ascending = values.toSorted((a, b) => a - b);
  const [low = Number.NaN, high = Number.NaN] = [ascending[(ascending.length - 1) >> 1], ascending[ascending.length >> 1]];
  return (low + high) / 2;
}

/** Returns the nearest-rank percentile: the smallest value that at least `percent` of the values do not exceed. NaN without values. */
export function percentile(values: readonly number[], percent: number): number {
  const ascending = values.toSorted((a, b) => a - b);
  return ascending[Math.ceil((percent / 100) * ascending.length) - 1] ?? Number.NaN;
}

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
  const outside = signTestRank(count);
  return { median: median(ratios), low: at(outside), high: at(count - 1 - outside) };
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
