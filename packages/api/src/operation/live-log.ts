import type { Readable } from 'node:stream';

/** Levels of lines that can be followed, with the most detailed one first. */
export const followedLevels = ['trace', 'debug', 'info', 'warn', 'error'] as const;
type FollowedLevel = (typeof followedLevels)[number];

export const logFormats = ['standard', 'json'] as const;
type LogFormat = (typeof logFormats)[number];

export interface FollowOptions {
  /** Lines of lower levels are left out. The level may be lower than that of the node's own log. */
  readonly level: FollowedLevel;
  readonly format: LogFormat;
  /** Asked every few seconds; the stream ends when it is false. */
  readonly mayContinue: () => Promise<boolean>;
}

/** The log of the running node. */
export interface LiveLog {
  /**
   * Returns a stream of the lines that are logged from now on. A slow reader loses lines, and the stream says how many. Destroy the stream
   * when nobody reads it.
   * @throws RequestError `overloaded` if the log is followed too many times already, or the node stops
   */
  follow(options: FollowOptions): Readable;
}
