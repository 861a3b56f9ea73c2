import { Readable } from 'node:stream';
import type { ClusterView } from './cluster-reports.ts';

/** Time between two lines, in milliseconds. */
const defaultEveryMs = 1000;

export interface ReportStreamOptions {
  readonly view: () => Promise<ClusterView>;
  /** Asked before each line; the stream ends when it is false or cannot be answered. */
  readonly mayContinue: () => Promise<boolean>;
  readonly everyMs?: number | undefined;
}

/** The reports of all members for one reader, as lines of JSON. Nothing is asked or kept for a reader that has not taken the last line. */
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
    this.#timer = setTimeout(() => void this.#next(), Math.max(0, this.#dueMs - performance.now()));
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    callback(error);
  }

  async #next(): Promise<void> {
    const { view, mayContinue, everyMs = defaultEveryMs } = this.#options;
    this.#dueMs = performance.now() + everyMs;
    try {
      const line = `${JSON.stringify(await view())}\n`;
      if (!(await mayContinue())) this.end();
      else if (!this.#isEnded) this.push(line);
    } catch {
      this.end(); // the reader asks again, and gets the reason as an answer
    }
  }
}
