import type { Logger as PinoLogger } from 'pino';

/** Writes log lines: `log.info({ field: value }, 'message')`. Callers name each field, and never log a request's body or headers. */
export type Logger = PinoLogger;
