import type { LogConfig } from '@transitd/configuration';
import { type DestinationStream, type Logger, pino } from 'pino';
import pretty from 'pino-pretty';

/**
 * Creates the log: one JSON object per line on stderr, with the name of its level, or colored text. Callers name the fields they log, and
 * never pass anything from the body or the headers of a request.
 */
export function createLog({ level, format }: LogConfig): Logger {
  const options = { level, base: null, timestamp: () => `,"time":"${new Date().toISOString()}"` };
  const formatters = { level: (label: string) => ({ level: label }) };
  return format === 'pretty'
    ? pino(
        options,
        pretty({ destination: 2, colorize: process.stderr.isTTY, sync: true, ignore: 'pid,hostname' }) as DestinationStream,
      )
    : pino({ ...options, formatters }, pino.destination({ dest: 2, sync: true }));
}
