import { coreAlone } from '../raft/core-alone.ts';
import type { Point } from './measures.ts';

const [runMs, bytesMs] = [1000, 300];
const entryBytes = 1024;

/**
 * Measures the consensus core of a leader with three voters and more learners than processes fit on one machine. Entries of 1 KiB, one at a
 * time and in batches of 16. The bytes contain the entries.
 */
export function coreCurve(learners: readonly number[]): { readonly size: string; readonly points: readonly Point[] } {
  const points = learners.map((size): Point => {
    const options = { entryBytes, learners: size };
    const [one, many] = [1, 16].map((batchEntries) => coreAlone({ ...options, batchEntries, ms: runMs }));
    const counted = coreAlone({ ...options, batchEntries: 1, ms: bytesMs, countsBytes: true });
    const perEntryUs = (run: typeof one): number => (1000 * (run?.leaderMs ?? Number.NaN)) / (run?.entries ?? 0);
    return {
      size,
      'one entry at a time, µs of the leader for each': perEntryUs(one),
      'sixteen at a time, µs of the leader for each': perEntryUs(many),
      'messages to each follower for each entry': counted.messages / counted.entries,
      'bytes to each follower for each entry': counted.bytes / counted.entries,
    };
  });
  return { size: 'learners, core alone', points };
}
