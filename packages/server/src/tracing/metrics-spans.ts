import { Counter, type Registry } from 'prom-client';
import type { SpanCounters } from './tracing.ts';

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
