interface Exemplar {
  readonly traceId: string;
  readonly ms: number;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/** A row of a metric as prom-client returns it. */
interface Row {
  readonly metricName?: string;
  readonly labels: { readonly le?: string | number };
}

/** The newest traced request in each bucket of one histogram without labels. OpenMetrics links a bucket to such a trace. */
export class Exemplars {
  readonly #bucket: string;
  readonly #boundsMs: readonly number[];
  readonly #byBound = new Map<string, Exemplar>();

  /** @param histogram - name of the metric @param boundsMs - upper bounds of its buckets, ascending, without infinity */
  constructor(histogram: string, boundsMs: readonly number[]) {
    this.#bucket = `${histogram}_bucket`;
    this.#boundsMs = boundsMs;
  }

  note(ms: number, traceId: string, atMs: number): void {
    const bound = this.#boundsMs.find((each) => ms <= each);
    this.#byBound.set(String(bound ?? '+Inf'), { traceId, ms, atMs });
  }

  /** Returns the text that follows the value of this row; empty if the row has no exemplar. */
  suffix({ metricName, labels }: Row): string {
    const exemplar = metricName === this.#bucket ? this.#byBound.get(String(labels.le)) : undefined;
    if (exemplar === undefined) return '';
    return ` # {trace_id="${exemplar.traceId}"} ${exemplar.ms} ${exemplar.atMs / 1000}`;
  }
}
