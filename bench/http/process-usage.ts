import { readFileSync } from 'node:fs';

/** Usage of one or more processes since their start. */
export interface ProcessUsage {
  /** User and system time of all threads. */
  readonly cpuUs: number;
  /** The same of each process alone. */
  readonly cpuUsEach: readonly number[];
  readonly residentBytes: number;
  /** The same without the files that are mapped, such as LevelDB's tables. */
  readonly ownBytes: number;
}

/** `USER_HZ` of Linux: the unit of times in `/proc/PID/stat`, on every architecture that Node supports. */
const usPerTick = 10_000;

/** Reads `/proc` and adds up all processes. Returns undefined if there are no processes, or if the files of one do not exist. */
export function usageOf(pids: readonly number[]): ProcessUsage | undefined {
  if (pids.length === 0) return undefined;
  try {
    const usages = pids.map((pid) =>
      parseUsage(readFileSync(`/proc/${pid}/stat`, 'utf8'), readFileSync(`/proc/${pid}/status`, 'utf8')),
    );
    const sum = (of: keyof (typeof usages)[number]): number => usages.reduce((total, usage) => total + usage[of], 0);
    const cpuUsEach = usages.map(({ cpuUs }) => cpuUs);
    return { cpuUs: sum('cpuUs'), cpuUsEach, residentBytes: sum('residentBytes'), ownBytes: sum('ownBytes') };
  } catch {
    return undefined;
  }
}

/** Parses the contents of `/proc/PID/stat` and `/proc/PID/status` (proc(5)). */
export function parseUsage(stat: string, status: string): Omit<ProcessUsage, 'cpuUsEach'> {
  // The second field is the command in parentheses; it may contain spaces and parentheses. The third field follows the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [userTicks, systemTicks] = [Number(fields[14 - 3]), Number(fields[15 - 3])];
  const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024;
  return { cpuUs: (userTicks + systemTicks) * usPerTick, residentBytes: bytes('VmRSS'), ownBytes: bytes('RssAnon') };
}
