import type { MetricObjectWithValues, MetricValue } from 'prom-client';

/** A metric as prom-client returns it. Its types lack `metricName`, which the rows of a histogram have. */
type Metric = MetricObjectWithValues<MetricValue<string> & { readonly metricName?: string }>;

/** Returns metrics in Vault's JSON format: gauges, counters, and samples with count, sum and mean. Durations are in milliseconds. */
export function metricsJson(metrics: readonly Metric[], now: Date): object {
  const ofType = (type: string): readonly Metric[] => metrics.filter((metric) => String(metric.type) === type);
  const values = (metric: Metric) =>
    metric.values.map(({ value, labels }) => ({ Name: metric.name, Value: value, Labels: labels }));
  return {
    Timestamp: now.toISOString(),
    Gauges: ofType('gauge').flatMap(values),
    Points: [],
    Counters: ofType('counter')
      .flatMap(values)
      .map(({ Name, Value, Labels }) => ({ Name, Count: Value, Labels })),
    Samples: ofType('histogram').flatMap(samples),
  };
}

/** Returns one row for each set of labels of a histogram. */
function samples({ name, values }: Metric): object[] {
  const rowsOf = (suffix: string) => values.filter(({ metricName }) => metricName === `${name}_${suffix}`);
  const sums = new Map(rowsOf('sum').map(({ labels, value }) => [JSON.stringify(labels), value]));
  return rowsOf('count').map(({ labels, value: count }) => {
    const sum = sums.get(JSON.stringify(labels)) ?? 0;
    return { Name: name, Count: count, Sum: sum, Mean: count === 0 ? 0 : sum / count, Labels: labels };
  });
}
