import { execFileSync } from 'node:child_process';

/**
 * Returns the bytes that a process has sent over its open TCP connections, without those that it accepted at `port`, as Linux counts them;
 * not a number without the command `ss`.
 */
export function sentBytes(pid: number, port: string): number {
  try {
    return parseSentBytes(
      execFileSync('ss', ['-tinpHO', 'state', 'established'], { encoding: 'utf8', maxBuffer: 2 ** 26 }),
      pid,
      port,
    );
  } catch {
    return Number.NaN;
  }
}

/** Adds up connections in the output of `ss -tinpHO state established`, which has a line for each of them (ss(8)). */
export function parseSentBytes(listing: string, pid: number, port: string): number {
  let sum = 0;
  for (const line of listing.split('\n')) {
    const [, , local = ''] = line.trim().split(/\s+/);
    if (!line.includes(`,pid=${pid},`) || local.endsWith(`:${port}`)) continue;
    sum += Number(/ bytes_sent:(\d+)/.exec(line)?.[1] ?? 0);
  }
  return sum;
}
