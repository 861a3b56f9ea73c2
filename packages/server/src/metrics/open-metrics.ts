import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { Exemplars } from './exemplars.ts';

export const openMetricsType = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** A metric as prom-client returns it. Its types lack `metricName`, which the rows of a histogram have. */
type Metric = MetricObjectWithValues<MetricValue<string> & { readonly metricName?: string }>;

/**
 * Returns the metrics in the OpenMetrics text format 1.0.
 *
 * Every sample has the same name as in the Prometheus text format. OpenMetrics requires that samples of a counter end in `_total`, which
 * Vault's names do not, so those counters are declared as `unknown`. Otherwise rules and dashboards would stop working as soon as a
 * Prometheus server negotiates this format, which it does by default (decision 134).
 */
export function openMetricsText(metrics: readonly Metric[], exemplars?: Exemplars): string {
  const lines = metrics.flatMap((metric) => [
    ...declarations(metric),
    ...metric.values.map((value) => `${sample(metric.name, value)}${exemplars?.suffix(value) ?? ''}`),
  ]);
  return `${lines.join('\n')}\n# EOF\n`;
}

/** Returns whether the `Accept` header prefers OpenMetrics 1.0 to plain text. A missing header does not. */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  const weights = { openMetrics: 0, plain: 0 };
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [type, ...parameters] = range.split(';').map((part) => part.trim());
    const of = (name: string) => parameters.find((parameter) => parameter.startsWith(`${name}=`))?.slice(name.length + 1);
    const weight = Number(of('q') ?? 1);
    const isOpenMetrics = type === 'application/openmetrics-text' && (of('version') ?? '1.0.0') === '1.0.0';
    if (isOpenMetrics) weights.openMetrics = Math.max(weights.openMetrics, weight);
    else if (type === 'text/plain') weights.plain = Math.max(weights.plain, weight);
  }
  return weights.openMetrics > 0 && weights.openMetrics >= weights.plain;
}

function declarations({ name, type, help }: Metric): string[] {
  const kind = String(type);
  const isPlainCounter = kind === 'counter' && !name.endsWith('_total');
  const family = kind === 'counter' ? name.replace(/_total$/, '') : name;
  return [`# TYPE ${family} ${isPlainCounter ? 'unknown' : kind}`, `# HELP ${family} ${escaped(help)}`];
}

function sample(name: string, { metricName = name, labels, value }: Metric['values'][number]): string {
  const pairs = Object.entries(labels).map(([label, text]) => {
    const shown = label === 'le' ? bound(text ?? '') : escaped(String(text));
    return `${label}="${shown}"`;
  });
  return `${metricName}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${numberText(value)}`;
}

/** Returns the bound of a bucket as OpenMetrics requires it: with a decimal point. */
const bound = (value: string | number): string => {
  const number = Number(value);
  return Number.isInteger(number) ? number.toFixed(1) : value === '+Inf' ? value : numberText(number);
};

const numberText = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? '+Inf' : value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);

const escaped = (text: string): string => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, '\\"');
