/** The smallest of the values that at least `percent` of them do not exceed (nearest rank); NaN of none. */
export function percentile(values: readonly number[], percent: number): number {
  const ascending = values.toSorted((a, b) => a - b);
  return ascending[Math.ceil((percent / 100) * ascending.length) - 1] ?? Number.NaN;
}
