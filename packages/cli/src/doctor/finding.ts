/** What one check has found, and what to do where something is wrong. */
export interface Finding {
  readonly state: 'ok' | 'warn' | 'fail';
  readonly check: string;
  readonly found: string;
  readonly todo?: string;
}

export const ok = (check: string, found: string): Finding => ({ state: 'ok', check, found });
export const warn = (check: string, found: string, todo: string): Finding => ({ state: 'warn', check, found, todo });
export const fail = (check: string, found: string, todo: string): Finding => ({ state: 'fail', check, found, todo });

const dayMs = 86_400_000;

/** Whether a certificate can be used now, and will be for a month. Times in ms since 1970. */
export function certificateFinding(
  check: string,
  { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number },
  nowMs: number,
): Finding {
  const until = `valid until ${new Date(untilMs).toISOString()}`;
  if (nowMs >= untilMs) return fail(check, `it was ${until}`, 'replace it; SIGHUP loads it');
  if (nowMs < fromMs) return fail(check, `it is valid from ${new Date(fromMs).toISOString()}`, 'check the clock, or replace it');
  const days = Math.floor((untilMs - nowMs) / dayMs);
  return days < 30 ? warn(check, `${until}, in ${days} days`, 'replace it; SIGHUP loads it') : ok(check, until);
}

/** Free space against what is kept back: below it writes are refused. */
export function diskFinding(freeBytes: number, reserveBytes: number): Finding {
  const mib = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`;
  const found = `${mib(freeBytes)} free, ${mib(reserveBytes)} kept back`;
  if (freeBytes < reserveBytes) return fail('disk', found, 'make room: writes are refused below the reserve');
  return freeBytes < 2 * reserveBytes
    ? warn('disk', found, 'make room soon: writes are refused below the reserve')
    : ok('disk', found);
}
