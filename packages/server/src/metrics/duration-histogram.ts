import { Histogram, type Registry } from 'prom-client';

/** Upper bounds of the buckets in milliseconds, from a read in memory to a write that waits for an election. */
export const durationBoundsMs: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000,
];

export interface DurationOptions<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly registers: Registry[];
  readonly labelNames?: readonly Label[];
  /** Upper bounds of the buckets in milliseconds. Set them for durations that are much longer or shorter than those of requests. */
  readonly buckets?: number[];
}

/** Registers a histogram of durations in milliseconds. Unlike quantiles, its counts can be summed over nodes and time. */
export const durationHistogram = <Label extends string = never>(options: DurationOptions<Label>): Histogram<Label> =>
  new Histogram({ buckets: [...durationBoundsMs], ...options });
