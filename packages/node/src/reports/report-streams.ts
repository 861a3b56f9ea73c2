import { Readable } from 'node:stream';
import { StoreError } from '@transitd/storage-fsm';
import type { ClusterView } from './node-report.ts';

/** Time between two lines, in milliseconds. */
const defaultEveryMs = 1000;
/** Time after which a reader that takes no line is disconnected, in milliseconds. */
const defaultStalledMs = 30_000;
/** Maximum number of open streams of one caller: a page that is open in as many windows. */
const perCallerMax = 4;
/** Maximum number of open streams of all callers. */
const streamsMax = 32;

/** Times of a stream, in milliseconds; tests shorten them. */
export interface ReportStreamTimes {
  readonly everyMs?: number;
  readonly stalledMs?: number;
}

interface ViewSource {
  view(): Promise<ClusterView>;
}

interface Reader {
  /** The ID of the token with which it reads. */
  readonly caller: string;
  /** Asked before each line; the stream ends when it is false or cannot be answered. */
  readonly mayContinue: () => Promise<boolean>;
}

/**
 * The reports of all members for one reader, as lines of JSON. Nothing is asked or kept for a reader that has not taken the last line. One
 * that takes none for long is disconnected: its rights are checked only before a line, so it would keep its place when they have ended.
 */
class ReportStream extends Readable {
  readonly #source: ViewSource;
  readonly #mayContinue: Reader['mayContinue'];
  readonly #times: ReportStreamTimes;
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  #isEnded = false;

  constructor(source: ViewSource, mayContinue: Reader['mayContinue'], times: ReportStreamTimes) {
    super({ highWaterMark: 1 });
    this.#source = source;
    this.#mayContinue = mayContinue;
    this.#times = times;
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
    const { everyMs = defaultEveryMs, stalledMs = defaultStalledMs } = this.#times;
    this.#dueMs = performance.now() + everyMs;
    try {
      const line = `${JSON.stringify(await this.#source.view())}\n`;
      if (!(await this.#mayContinue())) this.end();
      else if (!this.#isEnded) {
        this.#timer = setTimeout(() => this.destroy(), stalledMs);
        this.push(line);
      }
    } catch {
      this.end(); // the reader asks again, and gets the reason as an answer
    }
  }
}

/** The open streams of reports on this node. They end when the node stops, and their number is bounded, also for each caller. */
export class ReportStreams {
  readonly #source: ViewSource;
  readonly #times: ReportStreamTimes;
  readonly #callers = new Map<ReportStream, string>();
  #isClosed = false;

  constructor(source: ViewSource, times: ReportStreamTimes = {}) {
    this.#source = source;
    this.#times = times;
  }

  /**
   * Returns a stream of lines, each with the reports of all members as JSON; the first one comes at once. Destroy the stream when nobody
   * reads it.
   * @throws StoreError `busy`
   */
  follow({ caller, mayContinue }: Reader): Readable {
    if (this.#isClosed) throw refusal('the node stops');
    if (this.#callers.size >= streamsMax) throw refusal(`this node sends its reports to ${streamsMax} readers already`);
    const own = [...this.#callers.values()].filter((other) => other === caller);
    if (own.length >= perCallerMax) throw refusal(`this token follows the reports of this node ${perCallerMax} times already`);
    const stream = new ReportStream(this.#source, mayContinue, this.#times);
    this.#callers.set(stream, caller);
    stream.once('close', () => this.#callers.delete(stream));
    return stream;
  }

  /** Ends all streams and refuses further ones, so that no reader delays a stop. */
  close(): void {
    this.#isClosed = true;
    for (const stream of this.#callers.keys()) stream.end();
  }
}

const refusal = (why: string): StoreError => new StoreError('busy', `${why}; nothing was done`);
