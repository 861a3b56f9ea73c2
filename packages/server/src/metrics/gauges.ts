import { Gauge, type Registry } from 'prom-client';

/** Where metrics are registered, and the prefix of their names. */
export interface MetricTarget {
  readonly prefix: string;
  readonly registers: Registry[];
}

/** A value of a gauge, with the value of its label; undefined if the gauge has no label. */
export type GaugeRow = readonly [label: string | undefined, value: number];

/** Registers a gauge whose value is read at each scrape. */
export function registerGauge({ prefix, registers }: MetricTarget, name: string, help: string, value: () => number): void {
  new Gauge({
    name: `${prefix}_${name}`,
    help,
    registers,
    collect() {
      this.set(value());
    },
  });
}

/**
 * Registers a gauge whose rows are read at each scrape. A gauge without rows is absent from the scrape.
 * @param label - name of the label; undefined for a gauge that has at most one row
 */
export function registerRows(
  { prefix, registers }: MetricTarget,
  { name, help, label }: { readonly name: string; readonly help: string; readonly label?: string | undefined },
  rows: () => readonly GaugeRow[],
): void {
  new Gauge({
    name: `${prefix}_${name}`,
    help,
    registers,
    labelNames: label === undefined ? [] : [label],
    collect() {
      this.reset();
      if (label === undefined) this.remove(); // `reset` leaves the row without a label at 0
      for (const [labelValue, value] of rows()) {
        if (label === undefined || labelValue === undefined) this.set(value);
        else this.set({ [label]: labelValue }, value);
      }
    },
  });
}

/** Returns the value of a gauge that is 1 or 0. */
export const flag = (holds: boolean): number => (holds ? 1 : 0);
