import { addToDigest, emptyDigest } from '../../src/store/digest.ts';

import { type RestoreStep, restoredDigest } from '../../src/store/restore-step.ts';
import type { Command } from '../../src/store/transaction.ts';

export const restoring = (restore: RestoreStep): Command => ({ restore });
export const stage = (attempt: string, chunk: number, ...records: [path: string, value: string][]): Command =>
  restoring({ kind: 'stage', attempt, chunk, records: records.map(([path, value]) => ({ path, value: Buffer.from(value) })) });
export const swap = (
  attempt: string,
  records: [path: string, value: string][],
  keep: string[] = [],
  valuesWritten = 0,
): Command => {
  const digest = records
    .map(([path, value]) => restoredDigest({ path, value: Buffer.from(value) }))
    .reduce(addToDigest, emptyDigest);
  return restoring({ kind: 'swap', attempt, records: records.length, digest, valuesWritten, keep });
};
