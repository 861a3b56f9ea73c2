// Messages between the main thread and the threads of the load generator.
import type { RecordableHistogram } from 'node:perf_hooks';

/** One run: the same request again and again over a fixed number of connections, each with one request at a time. */
export interface Run {
  readonly url: string;
  readonly method: string;
  /** Path that contains the number of the run. The threads replace `{n}`. */
  readonly path: string;
  readonly spread: number | undefined;
  readonly token: string;
  readonly authority: string | undefined;
  readonly body: string | undefined;
  readonly connections: number;
  readonly seconds: number;
  readonly requests: number;
}

/** The share of one thread in a run. */
export interface ThreadRun extends Run {
  /** This thread takes the numbers `first`, `first + step`, … */
  readonly first: number;
  readonly step: number;
}

/** `open` connects and sends one request on each connection, which is not counted. `go` starts the run. */
export type Order = { readonly kind: 'open'; readonly run: ThreadRun } | { readonly kind: 'go' };

export type Report = { readonly kind: 'opened' } | { readonly kind: 'done'; readonly result: ThreadResult };

export interface ThreadResult {
  readonly requests: number;
  readonly failed: number;
  /** First failure: a status, or the code of a broken connection. */
  readonly failure: string | undefined;
  readonly elapsedMs: number;
  /** Latencies of the successful requests, in µs. */
  readonly latencies: RecordableHistogram;
  /** Fraction of the time in which the thread was not idle, 0 to 1. */
  readonly busy: number;
}

/** Range of the histograms of latencies, in µs. */
export const latencyRange = { lowest: 1, highest: 60_000_000, figures: 3 };
