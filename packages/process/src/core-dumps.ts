import { readFileSync } from 'node:fs';
import type { Logger } from './logger.ts';

/** Returns whether a crash of this process may write a core file, according to the soft limit in the text of `/proc/self/limits`. */
export const leavesCoreFiles = (limits: string): boolean => /^Max core file size\s+(?!0\s)\S/m.test(limits);

/**
 * Warns when a crash may write a core file, which would hold every key in memory. Linux only: other systems have no `/proc/self/limits`.
 */
export function warnOfCoreDumps(log: Logger): void {
  try {
    if (leavesCoreFiles(readFileSync('/proc/self/limits', 'utf8'))) {
      log.warn(
        'a crash of this process may write a core file that contains every key: set the limit to 0 (ulimit -c 0, LimitCORE=0) and restart',
      );
    }
  } catch {
    // no /proc: the limit is unknown
  }
}
