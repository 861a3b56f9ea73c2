import { readFileSync } from 'node:fs';
import type { Logger } from './logger.ts';

/** Whether a crash of this process may leave a core file: the soft limit in the text of `/proc/self/limits`. */
export const leavesCoreFiles = (limits: string): boolean => /^Max core file size\s+(?!0\s)\S/m.test(limits);

/** A core file holds every key that was in memory (Linux; elsewhere nothing is known). */
export function warnOfCoreDumps(log: Logger): void {
  try {
    if (leavesCoreFiles(readFileSync('/proc/self/limits', 'utf8'))) {
      log.warn('a crash may leave a core file with every key in it: start with the limit 0 (ulimit -c 0, LimitCORE=0)');
    }
  } catch {
    // no /proc: nothing to tell
  }
}
