import { Readable } from 'node:stream';
import type { ClusterView } from './node-report.ts';

/** Time between two lines, in milliseconds. */
const defaultEveryMs = 1000;
/** Time after which a reader that takes no line is disconnected, in milliseconds. */
const defaultStalledMs = 30_000;

/** Times of a stream, in milliseconds; tests shorten them. */
export interface ReportStreamTimes {
  readonly everyMs?: number;
  readonly stalledMs?: number;
}

/** Gives the newest reports of all members. */
export interface ViewSource {
  view(): Promise<ClusterView>;
}

export interface ReportStreamOptions {
  readonly source: ViewSource;
  /** Asked before each line; the stream ends when it is false or cannot be answered. */
  readonly mayContinue: () => Promise<boolean>;
  readonly times: ReportStreamTimes;
}

/**
 * The reports of all members for one reader, as lines of JSON. Nothing is asked or kept for a reader that has not taken the last line. One
 * that takes none for long is disconnected: its rights are checked only before a line, so it would keep its place when they have ended.
 */
export class ReportStream extends Readable {
  readonly #options: ReportStreamOptions;
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  #isEnded = false;

  constructor(options: ReportStreamOptions) {
    super({ highWaterMark: 1 });
    this.#options = options;
  }

  /** Ends the stream after the line that waits. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.push(null);
  }

  override _read(): void {
    if (this.#isEnded) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#next(), Math.max(0, this.#dueMs - performance.now()));
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    callback(error);
  }

  async #next(): Promise<void> {
    const { source, mayContinue, times } = this.#options;
    const { everyMs = defaultEveryMs, stalledMs = defaultStalledMs } = times;
    this.#dueMs = performance.now() + everyMs;
    try {
      const line = `${JSON.stringify(await source.view())}\n`;
      if (!(await mayContinue())) this.end();
      else if (!this.#isEnded) {
        this.#timer = setTimeout(() => this.destroy(), stalledMs);
        this.push(line);
      }
    } catch {
      this.end(); // the reader asks again, and gets the reason as an answer
    }
  }
}
