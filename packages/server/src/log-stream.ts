import { Readable } from 'node:stream';
import type { FollowOptions } from '@transitd/api';
import { textLine } from './log-text.ts';

/** Maximum size of the lines that wait for a reader, in bytes. */
const waitingBytesMax = 256 * 1024;

/**
 * The lines of the log for one reader. If the reader is slow, lines are left out, and a line that counts them takes their place: a reader
 * must never make the node wait or use memory without bound.
 */
export class LogStream extends Readable {
  readonly level: FollowOptions['level'];
  readonly #format: FollowOptions['format'];
  #omitted = 0;

  constructor({ level, format }: Pick<FollowOptions, 'level' | 'format'>) {
    super({ highWaterMark: waitingBytesMax });
    this.level = level;
    this.#format = format;
  }

  /** @param line - a JSON object with a final line end */
  add(line: string): void {
    const text = this.#format === 'json' ? line : textLine(line);
    this.#reportOmitted();
    if (this.#omitted > 0 || this.readableLength + Buffer.byteLength(text) > waitingBytesMax) this.#omitted += 1;
    else this.push(text);
  }

  /** Adds a line about the stream itself. */
  notice(level: 'info' | 'warn', message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    const line = `${JSON.stringify({ level, time: new Date().toISOString(), ...fields, msg: message })}\n`;
    this.push(this.#format === 'json' ? line : textLine(line));
  }

  /** Sends an empty line if nothing else waits, so that no proxy and no time-out ends a connection on which nothing is logged. */
  keepAlive(): void {
    if (this.readableLength === 0) this.push('\n');
  }

  /** Ends the stream after the lines that wait. */
  end(why: string): void {
    this.#reportOmitted({ force: true });
    this.notice('warn', why);
    this.push(null);
  }

  override _read(): void {
    this.#reportOmitted();
  }

  /** Reports lines that were left out once half of the room is free again. */
  #reportOmitted({ force = false } = {}): void {
    if (this.#omitted === 0 || (!force && this.readableLength > waitingBytesMax / 2)) return;
    const omitted = this.#omitted;
    this.#omitted = 0;
    this.notice('warn', 'lines were left out, because the reader is too slow', { omitted });
  }
}
