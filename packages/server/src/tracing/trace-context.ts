import { type SpanContext, TraceFlags } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';

/** Longest header `traceparent` that is read, in characters. Later versions of the format may append fields. */
const charsMax = 256;

/**
 * Returns the W3C trace context (https://www.w3.org/TR/trace-context/) in a header `traceparent`; undefined if it is malformed: the request
 * then starts a trace of its own.
 */
export function parseTraceparent(header: string | readonly string[] | undefined): SpanContext | undefined {
  const parsed = typeof header === 'string' && header.length <= charsMax ? parseTraceParent(header) : null;
  return parsed === null ? undefined : { ...parsed, isRemote: true };
}

export const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${isSampled({ traceFlags }) ? '01' : '00'}`;

export const isSampled = ({ traceFlags }: Pick<SpanContext, 'traceFlags'>): boolean =>
  (traceFlags & TraceFlags.SAMPLED) === TraceFlags.SAMPLED;
