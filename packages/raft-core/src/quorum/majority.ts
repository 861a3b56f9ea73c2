import type { NodeId } from '../types.ts';

/** Returns how many voters make a majority: 2 of 3, 3 of 4, 3 of 5. Zero voters have no majority. */
export const majority = (voterCount: number): number => Math.floor(voterCount / 2) + 1;

/** Returns the highest value that a majority of the voters reaches; minus infinity without voters. */
export function majorityValue(voters: readonly NodeId[], valueFor: (id: NodeId) => number): number {
  const descending = voters.map(valueFor).sort((a, b) => b - a);
  return descending[majority(voters.length) - 1] ?? Number.NEGATIVE_INFINITY;
}
