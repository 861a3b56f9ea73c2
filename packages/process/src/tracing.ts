/** The names of spans. Names and attributes of spans never come from a request. */
export type SpanName = 'request' | 'forward' | 'propose' | 'commit' | 'apply' | 'crypto' | 'generate';

/** One step of a sampled request, from its start until `end`. No method throws. */
export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The W3C header `traceparent` for a call that is a part of this span. */
  readonly traceparent: string;
  /** Starts a step of this one. */
  child(name: SpanName): Span;
  /** Sets an attribute. @param value - never anything that a caller sent */
  set(name: string, value: string | number | boolean): void;
  /** Ends the span; further calls have no effect. @param failed - whether the step failed */
  end(failed?: boolean): void;
}

/** Headers of a request: W3C trace context is in `traceparent`. */
export type TraceHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Makes spans. It is absent on a node whose configuration names no collector. */
export interface Tracer {
  /**
   * Starts the span of a request; undefined if the request is not sampled.
   * @param isForwarded - by another member, whose decision to sample counts without limit
   */
  request(headers: TraceHeaders, isForwarded?: boolean): Span | undefined;
  /** Runs `work`, and everything that it starts, with this span as `current`. */
  within<T>(span: Span, work: () => T): T;
  /** The span within which the caller runs. */
  current(): Span | undefined;
  /** Returns the header for a call that is a part of a request that is not sampled, so that no other node samples it. */
  unsampled(headers: TraceHeaders): string;
}
