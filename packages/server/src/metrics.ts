import type { AuditObserver } from '@transitd/audit';
import type { NodeObserver } from '@transitd/process';
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
  Summary,
} from 'prom-client';
import { registerAudit } from './metrics-audit.ts';
import { type ClusterFigures, registerClusterFigures } from './metrics-cluster.ts';
import { quantiles, registerHappenings } from './metrics-happenings.ts';
import { type LoadFigures, registerLoad } from './metrics-load.ts';
import { SharedRendering } from './shared-rendering.ts';

/** What the gauges read when they are scraped: state is asked for, never copied beside. */
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
  readonly barrierEncryptions: () => number;
  /** Absent where nothing bounds it. */
  readonly load?: LoadFigures;
  /** Undefined before the node is open. */
  readonly clock?: () => { readonly isTrusted: boolean; readonly deviationS: number } | undefined;
  /** Undefined on a node that has no peers. */
  readonly cluster?: () => ClusterFigures | undefined;
}

/**
 * Names that operators of such services know (no `_total`, summaries in milliseconds) where they exist; new ones in base units.
 * No label ever holds the name of a key, a token, a user or a policy.
 */
export class Metrics {
  readonly registry = new Registry();
  /** Counts what happens on the node. */
  readonly observer: NodeObserver;
  readonly audit: AuditObserver;
  readonly requestMs: Summary;
  readonly inFlight: Gauge;
  readonly responses: Counter<'class'>;
  /** Requests of callers that asked too often. */
  readonly limited: Counter;
  readonly #routeMs: Summary<'operation'>;
  readonly #text = new SharedRendering(() => this.registry.metrics());
  readonly #rows = new SharedRendering(() => this.registry.getMetricsAsJSON());
  /** One bound handle per operation, so that a request does no label look-up. */
  readonly #routes = new Map<string, Summary.Internal<'operation'>>();

  constructor(prefix: string, sources: MetricSources) {
    const registers = [this.registry];
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
    gauge('core_unsealed', '1 while this node is unsealed', () => (sources.unsealed() ? 1 : 0));
    gauge('core_active', '1 while this node is the active one', () => (sources.active() ? 1 : 0));
    gauge('barrier_estimated_encryptions', "Values encrypted under the barrier's present key", () =>
      sources.barrierEncryptions(),
    );
    gauge('raft_storage_stats_applied_index', 'Newest entry applied to the records', () => sources.raft()?.appliedIndex ?? 0);
    gauge('raft_storage_stats_commit_index', 'Newest entry known to be committed', () => sources.raft()?.commitIndex ?? 0);
    gauge(
      'raft_storage_stats_flushed_index',
      'Newest entry whose effect is durable in the state store',
      () => sources.raft()?.flushedIndex ?? 0,
    );
    gauge('raft_storage_stats_last_index', 'Newest entry in the log', () => sources.raft()?.lastIndex ?? 0);
    gauge('raft_storage_stats_term', 'Present term', () => sources.raft()?.term ?? 0);
    gauge('disk_low', '1 while free space is below the reserve and writes are refused', () => (sources.raft()?.diskLow ? 1 : 0));
    gauge('raft_storage_stats_fsm_pending', 'Entries committed and not yet applied', () => {
      const { commitIndex = 0, appliedIndex = 0 } = sources.raft() ?? {};
      return commitIndex - appliedIndex;
    });
    gauge('core_clock_trusted', '0 while the wall clock departs from the monotonic one and is not trusted', () =>
      sources.clock?.()?.isTrusted === false ? 0 : 1,
    );
    gauge(
      'core_clock_deviation_seconds',
      'Seconds by which the wall clock is ahead of where the monotonic one puts it',
      () => sources.clock?.()?.deviationS ?? 0,
    );
    this.audit = registerAudit({ prefix, registers });
    registerClusterFigures({ prefix, registers, cluster: sources.cluster ?? (() => undefined) });
    this.observer = registerHappenings({ prefix, registers });
    if (sources.load !== undefined) registerLoad({ prefix, registers, load: sources.load });
    this.requestMs = new Summary({
      name: `${prefix}_core_handle_request`,
      help: 'Milliseconds a request took',
      registers,
      ...quantiles,
    });
    this.inFlight = new Gauge({ name: `${prefix}_core_in_flight_requests`, help: 'Requests being answered', registers });
    this.responses = new Counter({
      name: `${prefix}_http_responses`,
      help: 'Answers by class of status',
      labelNames: ['class'],
      registers,
    });
    this.limited = new Counter({
      name: `${prefix}_quota_rate_limit_violation`,
      help: 'Requests refused because their caller asked too often',
      registers,
    });
    this.#routeMs = new Summary({
      name: `${prefix}_route_transit_`,
      help: 'Milliseconds per operation on a transit mount',
      labelNames: ['operation'],
      registers,
      ...quantiles,
    });
  }

  /** The bound handle of an operation such as `encrypt`. */
  route(operation: string): Summary.Internal<'operation'> {
    let handle = this.#routes.get(operation);
    if (!handle) {
      handle = this.#routeMs.labels(operation);
      this.#routes.set(operation, handle);
    }
    return handle;
  }

  /** Counts an answer by the class of its status. */
  responded(status: number): void {
    this.responses.inc({ class: `${Math.floor(status / 100)}xx` });
  }

  /** Text exposition 0.0.4. */
  prometheus(): Promise<string> {
    return this.#text.get();
  }

  /** The JSON form of `sys/metrics` without a format: gauges, counters and samples, names without the unit's suffixes. */
  async json(now: Date): Promise<object> {
    const all = await this.#rows.get();
    const rows = (type: string) => all.filter((metric) => String(metric.type) === type);
    const values = (metric: MetricObjectWithValues<MetricValue<string>>) =>
      metric.values.map(({ value, labels }) => ({ Name: metric.name, Value: value, Labels: labels }));
    return {
      Timestamp: now.toISOString(),
      Gauges: rows('gauge').flatMap(values),
      Points: [],
      Counters: rows('counter').flatMap((metric) =>
        values(metric).map(({ Name, Value, Labels }) => ({ Name, Count: Value, Labels })),
      ),
      Samples: rows('summary').flatMap(values),
    };
  }
}
