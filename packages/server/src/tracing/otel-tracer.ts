import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Span as ApiSpan,
  type Tracer as ApiTracer,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { RandomIdGenerator, type Sampler, type SpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { type Span, type SpanName, type TraceHeaders, type Tracer, version } from '@transitd/process';
import { markForwarded } from './request-sampler.ts';
import { parseTraceparent, traceparentOf } from './trace-context.ts';

export interface OtelTracerOptions {
  /** Name of the node that the spans belong to. */
  readonly node: string;
  readonly sampler: Sampler;
  /** Receives every span when it ends. */
  readonly processor: SpanProcessor;
}

/** Makes the spans of sampled requests with the SDK of OpenTelemetry. Its provider is not registered, so no other module can use it. */
export class OtelTracer implements Tracer {
  readonly #tracer: ApiTracer;
  readonly #ids = new RandomIdGenerator();
  readonly #current = new AsyncLocalStorage<OtelSpan>();

  constructor({ node, sampler, processor }: OtelTracerOptions) {
    const resource = resourceFromAttributes({
      'service.name': 'transitd',
      'service.version': version,
      'service.instance.id': node,
    });
    this.#tracer = new TracerProvider({ resource, sampler, spanProcessors: [processor] }).getTracer('transitd', version);
  }

  request({ traceparent }: TraceHeaders, isForwarded = false): Span | undefined {
    const parent = parseTraceparent(traceparent);
    const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
    const steps = { tracer: this.#tracer, offsetMs: Date.now() - performance.now() };
    const span = started('request', steps, isForwarded ? markForwarded(context) : context);
    return span.isRecording() ? new OtelSpan(span, steps) : undefined;
  }

  within<T>(span: Span, work: () => T): T {
    return span instanceof OtelSpan ? this.#current.run(span, work) : work();
  }

  current(): Span | undefined {
    const span = this.#current.getStore();
    // Steps that begin after the response belong to background tasks that the request started, and not to the request.
    return span?.isEnded === false ? span : undefined;
  }

  unsampled({ traceparent }: TraceHeaders): string {
    const { traceId, spanId } = parseTraceparent(traceparent) ?? {
      traceId: this.#ids.generateTraceId(),
      spanId: this.#ids.generateSpanId(),
    };
    return traceparentOf({ traceId, spanId, traceFlags: TraceFlags.NONE });
  }
}

/** What the steps of one request have in common. */
interface Steps {
  readonly tracer: ApiTracer;
  /** Difference between the wall clock and the monotonic clock at the start, so that a jump of the clock bends no span. */
  readonly offsetMs: number;
}

/** Kinds of the spans that are not a step inside the process: a request that is answered, and one that is sent. */
const kinds: Partial<Readonly<Record<SpanName, SpanKind>>> = { request: SpanKind.SERVER, forward: SpanKind.CLIENT };

const started = (name: SpanName, steps: Steps, context = ROOT_CONTEXT): ApiSpan =>
  steps.tracer.startSpan(name, { kind: kinds[name] ?? SpanKind.INTERNAL, startTime: nowMs(steps) }, context);

/** Milliseconds since 1970. */
const nowMs = ({ offsetMs }: Steps): number => offsetMs + performance.now();

class OtelSpan implements Span {
  readonly #span: ApiSpan;
  readonly #steps: Steps;

  constructor(span: ApiSpan, steps: Steps) {
    this.#span = span;
    this.#steps = steps;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get traceparent(): string {
    return traceparentOf(this.#span.spanContext());
  }

  get isEnded(): boolean {
    return !this.#span.isRecording();
  }

  child(name: SpanName): Span {
    return new OtelSpan(started(name, this.#steps, trace.setSpan(ROOT_CONTEXT, this.#span)), this.#steps);
  }

  set(name: string, value: string | number | boolean): void {
    this.#span.setAttribute(name, value);
  }

  end(failed = false): void {
    if (failed) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end(nowMs(this.#steps));
  }
}
