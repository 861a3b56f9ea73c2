import type { AuditObserver } from '@transitd/audit';
import type { WorkFigures } from '@transitd/node';
import type { NodeObserver } from '@transitd/process';
import { Counter, collectDefaultMetrics, type Histogram, Registry } from 'prom-client';
import { registerSpanCounters, type SpanCounters } from '../tracing/tracing.ts';
import { registerAuditMetrics } from './audit.ts';
import { registerCertificateMetrics, type ShownCertificate } from './certificates.ts';
import { registerClusterMetrics } from './cluster.ts';
import { registerEvents } from './events.ts';
import { Exemplars } from './exemplars.ts';
import { metricsJson } from './json.ts';
import { type LoadSources, registerLoadMetrics } from './load.ts';
import { registerNodeGauges } from './node-gauges.ts';
import { durationBoundsMs, durationHistogram, type NodeSource, registerGauge } from './register.ts';
import { registerReplicationMetrics } from './replication.ts';
import { SharedRendering } from './shared-rendering.ts';
import { openMetricsText, plainText } from './text-formats.ts';
import { workFigures } from './work-figures.ts';

/** Gauges of prom-client that are named like counters; each is the sum of a gauge by type. */
const sumsOfGauges = ['nodejs_active_resources_total', 'nodejs_active_handles_total', 'nodejs_active_requests_total'];

/** State that the metrics read at each scrape. Nothing is copied. */
export interface MetricSources {
  readonly node: NodeSource;
  /** The certificates of the listeners for clients; none if absent. */
  readonly certificates?: () => readonly ShownCertificate[];
  /** Names of the audit devices in the configuration. */
  readonly auditDevices?: readonly string[];
  /** Absent if the node has no limits. */
  readonly load?: LoadSources;
  /** Number of requests in flight in other threads. */
  readonly inFlightElsewhere?: () => number;
  /** Gets the observations that other threads have not reported yet. */
  readonly collect?: () => Promise<void>;
}

/**
 * The metrics of the process. Metrics that Vault also has use Vault's names (in snake case, no `_total`, durations in milliseconds); all
 * others use base units. No label contains the name of a key, a token, a user or a policy.
 */
export class Metrics {
  readonly registry = new Registry();
  /** Counts spans of traces. */
  readonly spans: SpanCounters;
  /** Receives the events of the node. */
  readonly observer: NodeObserver;
  readonly audit: AuditObserver;
  readonly requestMs: Histogram.Internal<never>;
  readonly inFlight: { inc(): void; dec(): void };
  readonly responses: Counter<'class'>;
  /** Requests refused by a rate limit. */
  readonly limited: Counter;
  readonly #prefix: string;
  readonly #routeMs: Histogram<'operation'>;
  readonly #rows: SharedRendering<Awaited<ReturnType<Registry['getMetricsAsJSON']>>>;
  readonly #exemplars: Exemplars;
  // Metric handles by label. They save a lookup of the label for each request.
  readonly #routes = new Map<string, Histogram.Internal<'operation'>>();
  readonly #classes = new Map<string, Counter.Internal>();

  constructor(prefix: string, sources: MetricSources) {
    this.#prefix = prefix;
    const registers = [this.registry];
    const target = { prefix, registers };
    this.#rows = new SharedRendering(async () => {
      await sources.collect?.();
      return this.registry.getMetricsAsJSON();
    });
    collectDefaultMetrics({ register: this.registry, prefix: '' });
    for (const name of sumsOfGauges) this.registry.removeSingleMetric(name);
    registerNodeGauges(target, sources.node);
    registerCertificateMetrics(target, sources.node, sources.certificates ?? (() => []));
    this.audit = registerAuditMetrics(target, sources.auditDevices ?? []);
    registerClusterMetrics(target, sources.node);
    registerReplicationMetrics(target, sources.node);
    this.observer = registerEvents(target);
    if (sources.load !== undefined) registerLoadMetrics(target, sources.load);
    this.requestMs = durationHistogram({
      name: `${prefix}_core_handle_request`,
      help: 'Duration of a request, in milliseconds',
      registers,
    }).labels();
    this.#exemplars = new Exemplars(`${prefix}_core_handle_request`, durationBoundsMs);
    let inFlight = 0;
    const allInFlight = () => inFlight + (sources.inFlightElsewhere?.() ?? 0);
    registerGauge(target, 'core_in_flight_requests', 'Number of requests in flight', allInFlight);
    this.inFlight = {
      inc() {
        inFlight += 1;
      },
      dec() {
        inFlight -= 1;
      },
    };
    this.responses = new Counter({
      name: `${prefix}_http_responses`,
      help: 'Responses by status class',
      labelNames: ['class'],
      registers,
    });
    this.limited = new Counter({
      name: `${prefix}_quota_rate_limit_violation`,
      help: 'Requests refused by a rate limit',
      registers,
    });
    this.spans = registerSpanCounters(target);
    this.#routeMs = durationHistogram({
      name: `${prefix}_route_transit_`,
      help: 'Duration of an operation on a transit mount, in milliseconds',
      labelNames: ['operation'],
      registers,
    });
  }

  /** Returns the bound handle of an operation such as `encrypt`. */
  route(operation: string): Histogram.Internal<'operation'> {
    let handle = this.#routes.get(operation);
    if (!handle) {
      handle = this.#routeMs.labels(operation);
      this.#routes.set(operation, handle);
    }
    return handle;
  }

  /** Keeps the trace of a request as an exemplar of its duration. @param traceId - 32 hexadecimal digits */
  traced(ms: number, traceId: string): void {
    this.#exemplars.note(ms, traceId, Date.now());
  }

  /** Counts a response by its status class. */
  responded(status: number): void {
    const name = `${Math.floor(status / 100)}xx`;
    let handle = this.#classes.get(name);
    if (!handle) {
      handle = this.responses.labels(name);
      this.#classes.set(name, handle);
    }
    handle.inc();
  }

  /** Returns the metrics in the Prometheus text format 0.0.4. */
  async prometheus(): Promise<string> {
    return plainText(await this.#rows.get());
  }

  /** Returns the metrics in the OpenMetrics text format 1.0. */
  async openMetrics(): Promise<string> {
    return openMetricsText(await this.#rows.get(), this.#exemplars);
  }

  /** Returns the work of this node since its start, for its report on itself. */
  work(): Promise<WorkFigures> {
    return workFigures(this.registry, this.#prefix);
  }

  /** Returns the JSON response of `sys/metrics` without a `format`. */
  async json(now: Date): Promise<object> {
    return metricsJson(await this.#rows.get(), now);
  }
}
