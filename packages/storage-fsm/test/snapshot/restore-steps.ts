import { addToDigest, emptyDigest } from '../../src/store/digest.ts';

import { type RestoreStep, restoredDigest } from '../../src/store/restore-step.ts';
import type { Transaction } from '../../src/store/transaction.ts';

export const restoring = (restore: RestoreStep): Transaction => ({ conditions: [], writes: [], restore });
export const stage = (attempt: string, chunk: number, ...records: [path: string, value: string][]): Transaction =>
  restoring({ kind: 'stage', attempt, chunk, records: records.map(([path, value]) => ({ path, value: Buffer.from(value) })) });
export const swap = (
  attempt: string,
  records: [path: string, value: string][],
  keep: string[] = [],
  valuesWritten = 0,
): Transaction => {
  const digest = records
    .map(([path, value]) => restoredDigest({ path, value: Buffer.from(value) }))
    .reduce(addToDigest, emptyDigest);
  return restoring({ kind: 'swap', attempt, records: records.length, digest, valuesWritten, keep });
};
