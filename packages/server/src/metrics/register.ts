import { type Counter, Gauge, type Registry } from 'prom-client';

/** Where metrics are registered, and the prefix of their names. */
export interface MetricTarget {
  readonly prefix: string;
  readonly registers: Registry[];
}

/** A value of a metric, with the value of its label; undefined if the metric has no label. */
export type MetricRow = readonly [label: string | undefined, value: number];

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
export const registerGauge = (target: MetricTarget, name: string, help: string, value: () => number): void =>
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
      for (const [labelValue, value] of rows()) {
        const labels = label === undefined || labelValue === undefined ? {} : { [label]: labelValue };
        if (this instanceof Gauge) this.set(labels, value);
        else this.inc(labels, value);
      }
    },
  });
}

/** Returns the value of a gauge that is 1 or 0. */
export const flag = (holds: boolean): number => (holds ? 1 : 0);
