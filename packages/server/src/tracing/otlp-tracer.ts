import { AsyncLocalStorage } from 'node:async_hooks';
import { randomInt } from 'node:crypto';
import type { Span, SpanName, TraceHeaders, Tracer } from '@transitd/process';
import type { EndedSpan } from './otlp-json.ts';
import { newSpanId, newTraceId, parseTraceparent, traceparentOf } from './trace-context.ts';

export interface OtlpTracerOptions {
  /** One of so many requests without a trace context is sampled. */
  readonly sampleOneIn: number;
  /** Receives every span when it ends. */
  readonly ended: (span: EndedSpan) => void;
  /** Random integer from 0 to `below` - 1; for tests. */
  readonly random?: (below: number) => number;
  /** Milliseconds of a clock that is never set; for tests. */
  readonly nowMs?: () => number;
}

/** Maximum number of requests in a second that are traced because their caller asked for it: callers are not trusted with more. */
export const askedPerSecondMax = 200;

/** The trace of one request on this node. */
interface Trace {
  readonly id: string;
  /** Difference between the wall clock and the monotonic clock at the start, so that a jump of the clock bends no span. */
  readonly offsetMs: number;
  /** The request is answered. Steps that begin later belong to background tasks that it started, and not to it. */
  isOver: boolean;
}

/**
 * Makes spans of sampled requests. A request with a trace context is sampled if its caller sampled it, up to 200 requests in a second; one
 * of `sampleOneIn` others is sampled too.
 */
export class OtlpTracer implements Tracer {
  readonly #options: OtlpTracerOptions;
  readonly #current = new AsyncLocalStorage<TracedSpan>();
  /** Requests of the present second whose callers asked for a trace. */
  #asked = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 };

  constructor(options: OtlpTracerOptions) {
    this.#options = options;
  }

  request({ traceparent }: TraceHeaders, isForwarded = false): Span | undefined {
    const parent = parseTraceparent(traceparent);
    const { sampleOneIn, random = randomInt, ended } = this.#options;
    if (parent?.sampled === false) return undefined;
    const isAsked = parent !== undefined && (isForwarded || this.#mayAsk());
    if (!isAsked && random(sampleOneIn) !== 0) return undefined;
    const trace = { id: parent?.traceId ?? newTraceId(), offsetMs: Date.now() - performance.now(), isOver: false };
    return new TracedSpan('request', { trace, parentSpanId: parent?.spanId, ended });
  }

  /** Counts a request whose caller asks for a trace; false if there were too many in this second. */
  #mayAsk(): boolean {
    const { nowMs = () => performance.now() } = this.#options;
    const now = nowMs();
    if (now - this.#asked.sinceMs >= 1000) this.#asked = { sinceMs: now, count: 0 };
    this.#asked.count += 1;
    return this.#asked.count <= askedPerSecondMax;
  }

  within<T>(span: Span, work: () => T): T {
    return span instanceof TracedSpan ? this.#current.run(span, work) : work();
  }

  current(): Span | undefined {
    const span = this.#current.getStore();
    return span === undefined || span.trace.isOver ? undefined : span;
  }

  unsampled({ traceparent }: TraceHeaders): string {
    const { traceId, spanId } = parseTraceparent(traceparent) ?? { traceId: newTraceId(), spanId: newSpanId() };
    return traceparentOf({ traceId, spanId, sampled: false });
  }
}

class TracedSpan implements Span {
  readonly trace: Trace;
  readonly #name: SpanName;
  readonly #id = newSpanId();
  readonly #parentSpanId: string | undefined;
  readonly #report: (span: EndedSpan) => void;
  readonly #startMs = performance.now();
  readonly #attributes = new Map<string, string | number | boolean>();
  #isEnded = false;

  constructor(
    name: SpanName,
    {
      trace,
      parentSpanId,
      ended,
    }: { readonly trace: Trace; readonly parentSpanId: string | undefined } & Pick<OtlpTracerOptions, 'ended'>,
  ) {
    this.#name = name;
    this.trace = trace;
    this.#parentSpanId = parentSpanId;
    this.#report = ended;
  }

  get traceId(): string {
    return this.trace.id;
  }

  get traceparent(): string {
    return traceparentOf({ traceId: this.trace.id, spanId: this.#id, sampled: true });
  }

  child(name: SpanName): Span {
    return new TracedSpan(name, { trace: this.trace, parentSpanId: this.#id, ended: this.#report });
  }

  set(name: string, value: string | number | boolean): void {
    if (!this.#isEnded) this.#attributes.set(name, value);
  }

  end(failed = false): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#name === 'request') this.trace.isOver = true;
    const { id: traceId, offsetMs } = this.trace;
    this.#report({
      traceId,
      spanId: this.#id,
      parentSpanId: this.#parentSpanId,
      name: this.#name,
      startMs: offsetMs + this.#startMs,
      endMs: offsetMs + performance.now(),
      failed,
      attributes: this.#attributes,
    });
  }
}
