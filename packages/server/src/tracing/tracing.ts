import { readFileSync } from 'node:fs';
import type { Config } from '@transitd/configuration';
import { type Logger, LogLimit, reasonOf, StartError, type Tracer, version } from '@transitd/process';
import { OtlpExporter } from './otlp-exporter.ts';
import { OtlpTracer } from './otlp-tracer.ts';

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
export function openTracing({ tracing, node_id: node }: Config, log: Logger, counters: SpanCounters): Tracing | undefined {
  const { endpoint, ca_file, sample_one_in: sampleOneIn } = tracing;
  if (endpoint === undefined) return undefined;
  const limit = new LogLimit({ log, nowMs: () => performance.now() });
  const exporter = new OtlpExporter({
    endpoint,
    ca: ca_file === undefined ? undefined : readCa(ca_file),
    resource: { node, version },
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
  return { tracer: new OtlpTracer({ sampleOneIn, ended: (span) => exporter.add(span) }), close: () => exporter.close() };
}

function readCa(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartError(`tracing.ca_file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}
