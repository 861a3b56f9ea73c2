import { createRequire } from 'node:module';
import type { FollowOptions, LiveLog } from '@transitd/api';
import type { LogConfig } from '@transitd/configuration';
import { overloaded } from '@transitd/http';
import { escapeInJson, type Logger } from '@transitd/process';
import { type DestinationStream, pino } from 'pino';
import { LogStream } from './log-stream.ts';
import { withVisibleEscapes } from './log-text.ts';

/** How often the log can be followed at once. */
const followersMax = 8;
/** How often it is checked whether a reader may continue, in milliseconds; also the longest time without output. */
const defaultCheckMs = 15_000;

type Sink = Pick<DestinationStream, 'write'> & { flushSync?(): void };

/**
 * The log of a node: one JSON object per line on stderr, with the name of its level, or colored text. Callers name the fields they log, and
 * never pass anything from the body or the headers of a request. So the log contains no secrets, and may be followed over the API.
 */
export class NodeLog implements LiveLog {
  readonly logger: Logger;
  readonly #sink: Sink;
  readonly #checkMs: number;
  readonly #followers = new Map<LogStream, FollowOptions>();
  #level: LogConfig['level'];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ level, format }: LogConfig, { sink = stderrIn(format), checkMs = defaultCheckMs } = {}) {
    this.#level = level;
    this.#sink = sink;
    this.#checkMs = checkMs;
    const timestamp = (): string => `,"time":"${new Date().toISOString()}"`;
    const formatters = { level: (label: string) => ({ level: label }) };
    this.logger = pino({ level, base: null, timestamp, formatters }, this.#destination());
  }

  /** The lowest level of the lines on stderr. */
  get level(): LogConfig['level'] {
    return this.#level;
  }

  set level(level: LogConfig['level']) {
    this.#level = level;
    this.#adjust();
  }

  follow(options: FollowOptions): LogStream {
    if (this.#closed || this.#followers.size >= followersMax) throw overloaded();
    const stream = new LogStream(options);
    stream.notice('info', 'following the log', { log_level: options.level });
    this.#followers.set(stream, options);
    stream.once('close', () => this.#forget(stream));
    this.#timer ??= setInterval(() => this.#check(), this.#checkMs).unref();
    this.#adjust();
    return stream;
  }

  /** Ends all streams and refuses further ones, so that no reader delays a stop. */
  close(): void {
    this.#closed = true;
    this.#end('the node stops');
  }

  #destination(): Sink & Record<symbol, true> & { lastLevel: number } {
    // pino sets `lastLevel` before each write, because of the symbol.
    const destination = {
      [Symbol.for('pino.metadata')]: true as const,
      lastLevel: 0,
      write: (line: string): void => this.#write(line, destination.lastLevel),
      flushSync: (): void => this.#sink.flushSync?.(),
    };
    return destination;
  }

  /** Values may come from other machines, and JSON allows some control characters in strings: none may reach a terminal. */
  #write(json: string, level: number): void {
    const line = `${escapeInJson(json.trimEnd())}\n`;
    if (level >= numberOf(this.#level)) this.#sink.write(line);
    for (const stream of this.#followers.keys()) if (level >= numberOf(stream.level)) stream.add(line);
  }

  /** Makes the logger produce the lines that somebody wants. */
  #adjust(): void {
    const wanted = [this.#level, ...[...this.#followers.keys()].map((stream) => stream.level)];
    this.logger.level = wanted.reduce((lowest, level) => (numberOf(level) < numberOf(lowest) ? level : lowest));
  }

  #check(): void {
    for (const [stream, { mayContinue }] of this.#followers) {
      const ended = (): void => this.#forget(stream, 'the token no longer allows this, or the node is sealed');
      mayContinue().then((may) => (may ? stream.keepAlive() : ended()), ended);
    }
  }

  #end(why: string): void {
    for (const stream of this.#followers.keys()) this.#forget(stream, why);
  }

  #forget(stream: LogStream, why?: string): void {
    if (!this.#followers.delete(stream)) return;
    if (why !== undefined) stream.end(why);
    if (this.#followers.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#adjust();
  }
}

const numberOf = (level: LogConfig['level']): number => pino.levels.values[level] ?? Number.POSITIVE_INFINITY;

function stderrIn(format: LogConfig['format']): Sink {
  if (format !== 'pretty') return pino.destination({ dest: 2, sync: true });
  const pretty = loadPretty()({ destination: 2, colorize: process.stderr.isTTY, sync: true, ignore: 'pid,hostname' });
  return { write: (line) => void pretty.write(withVisibleEscapes(line)) };
}

/** Loads the printer of colored text, which services do not need. */
const loadPretty = (): typeof import('pino-pretty') => createRequire(import.meta.url)('pino-pretty');
