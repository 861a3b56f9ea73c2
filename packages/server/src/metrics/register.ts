import type { Node } from '@transitd/node';
import { type Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Where metrics are registered, and the prefix of their names. */
export interface MetricTarget {
  readonly prefix: string;
  readonly registers: Registry[];
}

/** Returns this node; undefined until it is open. Metrics read its state at each scrape, and copy nothing. */
export type NodeSource = () => Node | undefined;

/** A value of a metric, with the value of its label; undefined if the metric has no label. A row without a value is absent. */
export type MetricRow = readonly [label: string | undefined, value: number | boolean | undefined];

export type MetricType = typeof Gauge<string> | typeof Counter<string>;

interface MetricDescription {
  readonly name: string;
  readonly help: string;
  /** Name of the label; undefined for a metric that has at most one row. */
  readonly label?: string | undefined;
  /** A gauge if absent. */
  readonly type?: MetricType;
}

/** Registers a gauge whose value is read at each scrape. */
export const registerGauge = (target: MetricTarget, name: string, help: string, value: () => number | boolean): void =>
  registerRows(target, { name, help }, () => [[undefined, value()]]);

/** Registers a metric whose rows are read at each scrape. A metric without rows is absent from the scrape. */
export function registerRows(
  { prefix, registers }: MetricTarget,
  { name, help, label, type: Type = Gauge }: MetricDescription,
  rows: () => readonly MetricRow[],
): void {
  new Type({
    name: `${prefix}_${name}`,
    help,
    registers,
    labelNames: label === undefined ? [] : [label],
    collect() {
      this.reset();
      if (label === undefined) this.remove(); // `reset` leaves the row without a label at 0
      for (const [labelValue, present] of rows()) {
        if (present === undefined) continue;
        const value = Number(present);
        const labels = label === undefined || labelValue === undefined ? {} : { [label]: labelValue };
        if (this instanceof Gauge) this.set(labels, value);
        else this.inc(labels, value);
      }
    },
  });
}

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
