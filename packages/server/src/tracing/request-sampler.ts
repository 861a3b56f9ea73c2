import { randomInt } from 'node:crypto';
import { type Context, createContextKey, trace } from '@opentelemetry/api';
import { type Sampler, SamplingDecision, type SamplingResult } from '@opentelemetry/sdk-trace';
import { isSampled } from './trace-context.ts';

export interface RequestSamplerOptions {
  /** One of so many requests without a trace context is sampled. */
  readonly sampleOneIn: number;
  /** Random integer from 0 to `below` - 1; for tests. */
  readonly random?: (below: number) => number;
  /** Milliseconds of a clock that is never set; for tests. */
  readonly nowMs?: () => number;
}

/** Maximum number of requests in a second that are traced because their caller asked for it: callers are not trusted with more. */
export const askedPerSecondMax = 200;

const forwardedKey = createContextKey('forwarded by a member');

/** Marks the context of a request that another member forwarded: that member's decision to sample counts without limit. */
export const markForwarded = (context: Context): Context => context.setValue(forwardedKey, true);

/**
 * Samples a request with a trace context if its caller sampled it, up to 200 requests in a second; of the requests beyond that, and of
 * those without a context, one in so many. A step is sampled with its request.
 */
export class RequestSampler implements Sampler {
  readonly #sampleOneIn: number;
  readonly #random: (below: number) => number;
  readonly #nowMs: () => number;
  /** Requests of the present second whose callers asked for a trace. */
  #asked = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 };

  constructor({ sampleOneIn, random = randomInt, nowMs = () => performance.now() }: RequestSamplerOptions) {
    this.#sampleOneIn = sampleOneIn;
    this.#random = random;
    this.#nowMs = nowMs;
  }

  shouldSample(context: Context): SamplingResult {
    return { decision: this.#samples(context) ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
  }

  #samples(context: Context): boolean {
    const parent = trace.getSpanContext(context);
    if (parent === undefined) return this.#isDrawn();
    if (!isSampled(parent)) return false;
    if (parent.isRemote !== true || context.getValue(forwardedKey) === true) return true;
    return this.#mayAsk() || this.#isDrawn();
  }

  /** Draws by a number of its own: the trace ID, by which the samplers of the SDK draw, may be the caller's choice. */
  #isDrawn(): boolean {
    return this.#random(this.#sampleOneIn) === 0;
  }

  /** Counts a request whose caller asks for a trace; false if there were too many in this second. */
  #mayAsk(): boolean {
    const now = this.#nowMs();
    if (now - this.#asked.sinceMs >= 1000) this.#asked = { sinceMs: now, count: 0 };
    this.#asked.count += 1;
    return this.#asked.count <= askedPerSecondMax;
  }
}
