import type { RenderedMetrics, RequestMetrics } from '../src/operation/metrics-port.ts';

const ignore = (): void => undefined;

/** Metrics that only count the requests refused by a rate limit. The rendering of metrics is tested in its own package. */
export class TestMetrics implements RequestMetrics, RenderedMetrics {
  readonly inFlight = { inc: ignore, dec: ignore };
  readonly requestMs = { observe: ignore };
  readonly traced = ignore;
  readonly limited = { count: 0, inc: () => void this.limited.count++ };
  readonly responded = ignore;
  readonly route = () => this.requestMs;
  readonly prometheus = async () => 'up 1\n';
  readonly json = async () => ({ Timestamp: '', Gauges: [], Points: [], Counters: [], Samples: [] });
}
