/** Metrics of the request pipeline; durations in milliseconds. */
export interface RequestMetrics {
  readonly inFlight: { inc(): void; dec(): void };
  readonly requestMs: { observe(ms: number): void };
  /** The latest request of a sampled trace, for exemplars. @param traceId - 32 hexadecimal digits */
  traced(ms: number, traceId: string): void;
  /** Requests refused because their caller exceeded a rate limit. */
  readonly limited: { inc(): void };
  /** Returns the duration histogram of one operation, such as `encrypt`. */
  route(operation: string): { observe(ms: number): void };
  /** Counts a response by the class of its status. */
  responded(status: number): void;
}

/** Renders the metrics of this node. */
export interface RenderedMetrics {
  /** Returns the metrics in the Prometheus text format 0.0.4. */
  prometheus(): Promise<string>;
  /** Returns the metrics in the JSON form of `sys/metrics`. */
  json(now: Date): Promise<object>;
}
