import type { ClusterView, Report, Work } from './members.ts';

/** The values of one node in the plots, at one time. `undefined`: not known. */
export interface Sample {
  readonly requests: number | undefined;
  readonly errors: number | undefined;
  readonly p50: number | undefined;
  readonly p99: number | undefined;
  readonly writes: number | undefined;
  readonly fsync: number | undefined;
  readonly disk: number | undefined;
  readonly memory: number | undefined;
}
export type Metric = keyof Sample;

/** A point of time with one sample for each member that reported. */
export interface Point {
  readonly atMs: number;
  readonly samples: ReadonlyMap<string, Sample>;
}

/** Five minutes, at one view each second. */
export const pointsMax = 300;

/** Adds a view to the points. Rates and quantiles count the time since the view before. */
export function withView(points: readonly Point[], before: ClusterView | undefined, view: ClusterView): readonly Point[] {
  if (before === view) return points;
  const samples = new Map<string, Sample>();
  for (const { name, report } of view.members) {
    const earlier = before?.members.find((member) => member.name === name)?.report;
    if (report !== undefined) samples.set(name, sampleOf(report, earlier));
  }
  return [...points.slice(1 - pointsMax), { atMs: view.atMs, samples }];
}

function sampleOf(report: Report, earlier: Report | undefined): Sample {
  const { work, totalBytes, freeBytes, utcMs } = report;
  const seconds = earlier === undefined ? 0 : (utcMs - earlier.utcMs) / 1000;
  const from = earlier?.work;
  // A node that was started again counts from zero: there is no rate for that step.
  const isComparable = work !== undefined && from !== undefined && seconds > 0 && work.requests >= from.requests;
  const rate = (of: (work: Work) => number): number | undefined =>
    isComparable ? Math.max(0, of(work) - of(from)) / seconds : undefined;
  return {
    requests: rate((one) => one.requests),
    errors: rate((one) => one.refused + one.failed),
    p50: isComparable ? quantile(0.5, from, work) : undefined,
    p99: isComparable ? quantile(0.99, from, work) : undefined,
    writes: rate((one) => one.writes),
    fsync: report.writeMs,
    disk: totalBytes && freeBytes !== undefined ? (100 * (totalBytes - freeBytes)) / totalBytes : undefined,
    memory: report.memoryBytes / 2 ** 20,
  };
}

/** Estimates a quantile of the durations between two reports, by interpolation within a bucket. */
export function quantile(q: number, from: Work, to: Work): number | undefined {
  const counts = to.durations.map(([ms, requests], index) => ({ ms, requests: requests - (from.durations[index]?.[1] ?? 0) }));
  const total = to.requests - from.requests;
  if (total <= 0 || counts.length === 0) return undefined;
  const rank = q * total;
  let below = { ms: 0, requests: 0 };
  for (const bucket of counts) {
    if (bucket.requests >= rank) {
      const inside = bucket.requests - below.requests;
      return below.ms + (inside === 0 ? 0 : ((rank - below.requests) / inside) * (bucket.ms - below.ms));
    }
    below = bucket;
  }
  return below.ms;
}
