import type { AuditObserver } from '@transitd/audit';
import type { ProviderHealth } from '@transitd/barrier';
import type { WorkFigures } from '@transitd/node';
import type { NodeObserver } from '@transitd/process';
import { supportedLevels } from '@transitd/storage-fsm';
import { Counter, collectDefaultMetrics, Gauge, type Histogram, Registry } from 'prom-client';
import { durationBoundsMs, durationHistogram } from './duration-histogram.ts';
import { Exemplars } from './exemplars.ts';
import { registerAuditMetrics } from './metrics-audit.ts';
import { type ClusterFigures, registerClusterMetrics } from './metrics-cluster.ts';
import { registerEvents } from './metrics-events.ts';
import { metricsJson } from './metrics-json.ts';
import { type LoadFigures, registerLoadMetrics } from './metrics-load.ts';
import { type ReplicationFigures, registerReplicationMetrics } from './metrics-replication.ts';
import { openMetricsText } from './open-metrics.ts';
import { SharedRendering } from './shared-rendering.ts';
import { registerSpanCounters } from './tracing/metrics-spans.ts';
import type { SpanCounters } from './tracing/tracing.ts';
import { workFigures } from './work-figures.ts';

/** State that the gauges read at each scrape. Nothing is copied. */
export interface MetricSources {
  readonly unsealed: () => boolean;
  readonly active: () => boolean;
  readonly raft: () =>
    | {
        readonly appliedIndex: number;
        readonly commitIndex: number;
        readonly flushedIndex: number;
        readonly lastIndex: number;
        readonly term: number;
        readonly diskLow: boolean;
      }
    | undefined;
  /** Feature level of the state of this node. */
  readonly featureLevel?: () => number;
  /** Time for which a write to the disk has hung, in ms. */
  readonly diskStalledMs?: () => number;
  readonly barrierEncryptions: () => number;
  /** Names of the audit devices in the configuration. */
  readonly auditDevices?: readonly string[];
  /** The health of the seal's provider; undefined if the seal has none. */
  readonly seal?: () => ProviderHealth | undefined;
  /** Absent if the node has no limits. */
  readonly load?: LoadFigures;
  /** Undefined before the node is open. */
  readonly clock?: () => { readonly isTrusted: boolean; readonly deviationS: number } | undefined;
  /** Undefined on a node without a cluster. */
  readonly cluster?: () => ClusterFigures | undefined;
  /** Undefined unless this node is the active node of a cluster that replicates. */
  readonly replication?: () => ReplicationFigures | undefined;
  /** Number of requests in flight in other threads. */
  readonly inFlightElsewhere?: () => number;
  /** Gets the observations that other threads have not reported yet. */
  readonly collect?: () => Promise<void>;
}

/**
 * The metrics of the process. Metrics that Vault also has use Vault's names (no `_total`, durations in milliseconds); all others use base
 * units. No label contains the name of a key, a token, a user or a policy.
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
  readonly #text: SharedRendering<string>;
  readonly #rows: SharedRendering<Awaited<ReturnType<Registry['getMetricsAsJSON']>>>;
  readonly #exemplars: Exemplars;
  // Metric handles by label. They save a lookup of the label for each request.
  readonly #routes = new Map<string, Histogram.Internal<'operation'>>();
  readonly #classes = new Map<string, Counter.Internal>();

  constructor(prefix: string, sources: MetricSources) {
    this.#prefix = prefix;
    const registers = [this.registry];
    this.#text = new SharedRendering(async () => {
      await sources.collect?.();
      return this.registry.metrics();
    });
    this.#rows = new SharedRendering(async () => {
      await sources.collect?.();
      return this.registry.getMetricsAsJSON();
    });
    const gauge = (name: string, help: string, value: () => number): void => {
      new Gauge({
        name: `${prefix}_${name}`,
        help,
        registers,
        collect() {
          this.set(value());
        },
      });
    };
    collectDefaultMetrics({ register: this.registry, prefix: '' });
    gauge('core_unsealed', '1 if this node is unsealed, otherwise 0', () => (sources.unsealed() ? 1 : 0));
    gauge('core_active', '1 if this node is the active node, otherwise 0', () => (sources.active() ? 1 : 0));
    gauge('barrier_estimated_encryptions', 'Number of values encrypted with the current encryption key of the barrier', () =>
      sources.barrierEncryptions(),
    );
    gauge('raft_storage_stats_applied_index', 'Index of the last applied log entry', () => sources.raft()?.appliedIndex ?? 0);
    gauge(
      'raft_storage_stats_commit_index',
      'Index of the last log entry known to be committed',
      () => sources.raft()?.commitIndex ?? 0,
    );
    gauge(
      'raft_storage_stats_flushed_index',
      'Index of the last log entry flushed to the state store',
      () => sources.raft()?.flushedIndex ?? 0,
    );
    gauge('raft_storage_stats_last_index', 'Index of the last entry in the log', () => sources.raft()?.lastIndex ?? 0);
    gauge(
      'raft_feature_level',
      'Feature level of the cluster, as of the last log entry that this node applied',
      () => sources.featureLevel?.() ?? 0,
    );
    gauge(
      'raft_feature_level_supported',
      'Highest feature level that the release of this node supports',
      () => supportedLevels.newest,
    );
    gauge('raft_storage_stats_term', 'Current Raft term', () => sources.raft()?.term ?? 0);
    gauge('disk_low', '1 if free disk space is below the reserve and writes are refused, otherwise 0', () =>
      sources.raft()?.diskLow ? 1 : 0,
    );
    gauge(
      'disk_stalled_seconds',
      'Seconds for which the present write to the log, or a flush that blocks writes, has been in progress, otherwise 0',
      () => (sources.diskStalledMs?.() ?? 0) / 1000,
    );
    gauge('raft_storage_stats_fsm_pending', 'Number of committed log entries that are not yet applied', () => {
      const { commitIndex = 0, appliedIndex = 0 } = sources.raft() ?? {};
      return commitIndex - appliedIndex;
    });
    gauge('core_clock_trusted', '0 if the wall clock deviates from the monotonic clock and is not trusted, otherwise 1', () =>
      sources.clock?.()?.isTrusted === false ? 0 : 1,
    );
    gauge(
      'core_clock_deviation_seconds',
      'Deviation of the wall clock from the monotonic clock, in seconds; positive if the wall clock is ahead',
      () => sources.clock?.()?.deviationS ?? 0,
    );
    gauge('seal_unreachable_time', 'Milliseconds since the provider of the seal stopped serving this node, otherwise 0', () => {
      const since = sources.seal?.()?.unhealthySinceMs;
      return since === undefined ? 0 : Math.max(0, Date.now() - since);
    });
    this.audit = registerAuditMetrics({ prefix, registers, devices: sources.auditDevices ?? [] });
    registerClusterMetrics({ prefix, registers, cluster: sources.cluster ?? (() => undefined) });
    registerReplicationMetrics({ prefix, registers, replication: sources.replication ?? (() => undefined) });
    this.observer = registerEvents({ prefix, registers });
    if (sources.load !== undefined) registerLoadMetrics({ prefix, registers, load: sources.load });
    this.requestMs = durationHistogram({
      name: `${prefix}_core_handle_request`,
      help: 'Duration of a request, in milliseconds',
      registers,
    }).labels();
    this.#exemplars = new Exemplars(`${prefix}_core_handle_request`, durationBoundsMs);
    let inFlight = 0;
    gauge('core_in_flight_requests', 'Number of requests in flight', () => inFlight + (sources.inFlightElsewhere?.() ?? 0));
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
    this.spans = registerSpanCounters({ prefix, registers });
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
  prometheus(): Promise<string> {
    return this.#text.get();
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
