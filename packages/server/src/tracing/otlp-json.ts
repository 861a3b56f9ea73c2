import type { SpanName } from '@transitd/process';

/** A span that has ended. Times are in milliseconds since 1970. */
export interface EndedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: SpanName;
  readonly startMs: number;
  readonly endMs: number;
  readonly failed: boolean;
  readonly attributes: ReadonlyMap<string, string | number | boolean>;
}

/** The process that the spans belong to. */
export interface Resource {
  readonly node: string;
  readonly version: string;
}

/** Kinds of spans in OpenTelemetry: a step inside the process, a request that is answered, a request that is sent. */
const kinds: Readonly<Record<SpanName, number>> = {
  request: 2,
  forward: 3,
  propose: 1,
  commit: 1,
  apply: 1,
  crypto: 1,
  generate: 1,
};
const statusError = 2;

/** Returns the body of an export: an `ExportTraceServiceRequest` of OTLP in JSON. */
export function exportBody(spans: readonly EndedSpan[], { node, version }: Resource): string {
  const resource = attributesOf([
    ['service.name', 'transitd'],
    ['service.version', version],
    ['service.instance.id', node],
  ]);
  const scopeSpans = [{ scope: { name: 'transitd', version }, spans: spans.map(spanJson) }];
  return JSON.stringify({ resourceSpans: [{ resource: { attributes: resource }, scopeSpans }] });
}

const spanJson = ({ traceId, spanId, parentSpanId, name, startMs, endMs, failed, attributes }: EndedSpan): object => ({
  traceId,
  spanId,
  ...(parentSpanId !== undefined && { parentSpanId }),
  name,
  kind: kinds[name],
  startTimeUnixNano: nanoseconds(startMs),
  endTimeUnixNano: nanoseconds(endMs),
  attributes: attributesOf([...attributes]),
  status: failed ? { code: statusError } : {},
});

const attributesOf = (pairs: readonly (readonly [string, string | number | boolean])[]): object[] =>
  pairs.map(([key, value]) => ({ key, value: typedValue(value) }));

/** 64-bit integers are strings in OTLP. */
const typedValue = (value: string | number | boolean): object => {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
};

/** Milliseconds as a decimal number of nanoseconds, which a double could not hold exactly. */
const nanoseconds = (ms: number): string => {
  const whole = Math.floor(ms);
  return String(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1_000_000)));
};
