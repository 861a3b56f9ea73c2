import type { Config } from '@transitd/configuration';
import { type Logger, LogLimit, readNamedFile, reasonOf, type Tracer } from '@transitd/process';
import { Counter, type Registry } from 'prom-client';

/** Counts spans. */
export interface SpanCounters {
  exported(spans: number): void;
  dropped(spans: number): void;
}

export interface Tracing {
  readonly tracer: Tracer;
  /** Exports the last spans, for at most some seconds. */
  close(): Promise<void>;
}

/** The kind of the log lines about exports. */
const failing = 'export';

/** Returns the tracer of the configuration; undefined if it names no collector. @throws StartError if the CA file cannot be read */
export async function openTracing(
  { tracing, node_id: node }: Pick<Config, 'tracing' | 'node_id'>,
  log: Logger,
  counters: SpanCounters,
): Promise<Tracing | undefined> {
  const { endpoint, ca_file, sample_one_in: sampleOneIn } = tracing;
  if (endpoint === undefined) return undefined;
  const ca = ca_file === undefined ? undefined : readNamedFile('tracing.ca_file', ca_file).toString();
  // Loaded here: a node without a collector does not need the SDK of OpenTelemetry.
  const [{ OtelTracer }, { RequestSampler }, { spanQueue }] = await Promise.all([
    import('./otel-tracer.ts'),
    import('./request-sampler.ts'),
    import('./otlp-exporter.ts'),
  ]);
  const limit = new LogLimit({ log });
  const processor = spanQueue({
    endpoint,
    ca,
    exported: (spans, error) => {
      if (error === undefined) {
        counters.exported(spans);
        if (limit.ended(failing)) log.info('the collector of traces accepts spans again');
        return;
      }
      counters.dropped(spans);
      limit.write(
        'warn',
        failing,
        { reason: reasonOf(error) },
        'spans were dropped: the collector of traces does not accept them',
      );
    },
  });
  const tracer = new OtelTracer({ node, sampler: new RequestSampler({ sampleOneIn }), processor });
  return { tracer, close: () => processor.shutdown() };
}

/** Registers the counters of spans, which stay 0 on a node without a collector. */
export function registerSpanCounters({
  prefix,
  registers,
}: {
  readonly prefix: string;
  readonly registers: Registry[];
}): SpanCounters {
  const counter = (name: string, help: string): Counter => new Counter({ name: `${prefix}_tracing_${name}`, help, registers });
  const exported = counter('spans_exported', 'Spans that the collector of traces accepted');
  const dropped = counter('spans_dropped', 'Spans that were dropped because the collector of traces is slow or fails');
  return { exported: (spans) => exported.inc(spans), dropped: (spans) => dropped.inc(spans) };
}
