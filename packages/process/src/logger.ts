import type { Logger as PinoLogger } from 'pino';

/** Writes log lines: `log.info({ field: value }, 'message')`. Callers name the fields that they log; nothing from a request's body or headers is among them. */
export type Logger = PinoLogger;
