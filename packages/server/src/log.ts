import type { LogConfig } from '@transitd/configuration';
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

/**
 * One JSON object a line on stderr, or coloured text for a person. Nothing that came in a request's body or headers is ever
 * handed to it: callers name the fields that they log.
 */
export function createLog({ level, format }: LogConfig): Logger {
  const options = { level, base: null, timestamp: () => `,"time":"${new Date().toISOString()}"` };
  return format === 'pretty'
    ? pino(
        options,
        pretty({ destination: 2, colorize: process.stderr.isTTY, sync: true, ignore: 'pid,hostname' }) as DestinationStream,
      )
    : pino(options, pino.destination({ dest: 2, sync: true }));
}
