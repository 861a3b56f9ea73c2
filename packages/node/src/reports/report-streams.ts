import type { Readable } from 'node:stream';
import { StoreError } from '@transitd/storage-fsm';
import { ReportStream, type ReportStreamOptions, type ReportStreamTimes, type ViewSource } from './report-stream.ts';

/** Maximum number of open streams of one caller: a page that is open in as many windows. */
const perCallerMax = 4;
/** Maximum number of open streams of all callers. */
const streamsMax = 32;

export interface FollowedBy extends Pick<ReportStreamOptions, 'mayContinue'> {
  /** The ID of the caller's token. */
  readonly caller: string;
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
  follow({ caller, mayContinue }: FollowedBy): Readable {
    if (this.#isClosed) throw refusal('the node stops');
    if (this.#callers.size >= streamsMax) throw refusal(`this node sends its reports to ${streamsMax} readers already`);
    const own = [...this.#callers.values()].filter((other) => other === caller);
    if (own.length >= perCallerMax) throw refusal(`this token follows the reports of this node ${perCallerMax} times already`);
    const stream = new ReportStream({ source: this.#source, mayContinue, times: this.#times });
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
