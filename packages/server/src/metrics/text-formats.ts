import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { Exemplars } from './exemplars.ts';

export const plainType = 'text/plain; version=0.0.4; charset=utf-8';
export const openMetricsType = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** A metric as prom-client returns it. Its types lack `metricName`, which the rows of a histogram have. */
type Metric = MetricObjectWithValues<MetricValue<string> & { readonly metricName?: string }>;

/** A text format of Prometheus. */
interface TextFormat {
  /** The type of a counter whose name does not end in `_total`. */
  readonly plainCounter: string;
  /** Returns the name of a counter in its declaration. */
  readonly counterFamily: (name: string) => string;
  readonly help: (text: string) => string;
  /** Returns the text of a bucket's bound. */
  readonly bound: (value: string | number) => string;
}

const escaped = (text: string): string => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, '\\"');

const numberText = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? '+Inf' : value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);

const plain: TextFormat = {
  plainCounter: 'untyped',
  counterFamily: (name) => name,
  help: (text) => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n'),
  bound: String,
};

const open: TextFormat = {
  plainCounter: 'unknown',
  counterFamily: (name) => name.replace(/_total$/, ''),
  help: escaped,
  // OpenMetrics requires a decimal point.
  bound: (value) => {
    const number = Number(value);
    return Number.isInteger(number) ? number.toFixed(1) : value === '+Inf' ? value : numberText(number);
  },
};

/** Returns the metrics in the Prometheus text format 0.0.4. */
export const plainText = (metrics: readonly Metric[]): string => `${textOf(metrics, plain).join('\n')}\n`;

/** Returns the metrics in the OpenMetrics text format 1.0. */
export const openMetricsText = (metrics: readonly Metric[], exemplars?: Exemplars): string =>
  `${textOf(metrics, open, exemplars).join('\n')}\n# EOF\n`;

/**
 * Returns the lines of metrics in a format. Every sample has the same name in both formats.
 *
 * Samples of a counter should end in `_total`, and OpenMetrics requires it. Vault's names do not, so those counters are declared as
 * metrics of no known type. Otherwise rules and dashboards would stop working as soon as a Prometheus server negotiates OpenMetrics, which
 * it does by default (decision 109).
 */
const textOf = (metrics: readonly Metric[], format: TextFormat, exemplars?: Exemplars): string[] =>
  metrics.flatMap((metric) => [
    ...declarations(metric, format),
    ...metric.values.map((value) => `${sample(metric.name, value, format)}${exemplars?.suffix(value) ?? ''}`),
  ]);

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

function declarations({ name, type, help }: Metric, format: TextFormat): string[] {
  const kind = String(type);
  const isPlainCounter = kind === 'counter' && !name.endsWith('_total');
  const family = kind === 'counter' ? format.counterFamily(name) : name;
  return [`# TYPE ${family} ${isPlainCounter ? format.plainCounter : kind}`, `# HELP ${family} ${format.help(help)}`];
}

function sample(name: string, { metricName = name, labels, value }: Metric['values'][number], { bound }: TextFormat): string {
  const pairs = Object.entries(labels).map(([label, text]) => {
    const shown = label === 'le' ? bound(text ?? '') : escaped(String(text));
    return `${label}="${shown}"`;
  });
  return `${metricName}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${numberText(value)}`;
}
