/** Returns the nearest-rank percentile: the smallest value that at least `percent` of the values do not exceed. NaN without values. */
export function percentile(values: readonly number[], percent: number): number {
  const ascending = values.toSorted((a, b) => a - b);
  return ascending[Math.ceil((percent / 100) * ascending.length) - 1] ?? Number.NaN;
}
