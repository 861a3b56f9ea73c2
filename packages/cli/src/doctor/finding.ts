import { revocationWarnedMs } from '@transitd/configuration';
import { type DiskSpace, isCapped, reserveIn } from '@transitd/storage-fsm';

/** Result of one check, with a suggested fix unless it is ok. */
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

/** Checks that a certificate is valid now and for the next 30 days. Times in ms since 1970. */
export function certificateFinding(
  check: string,
  { fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number },
  nowMs: number,
): Finding {
  const [from, until] = [fromMs, untilMs].map((ms) => new Date(ms).toISOString());
  if (nowMs >= untilMs) return fail(check, `expired on ${until}`, 'replace it and send SIGHUP to reload');
  if (nowMs < fromMs) return fail(check, `not valid before ${from}`, 'check the clock, or replace the certificate');
  const days = Math.floor((untilMs - nowMs) / dayMs);
  return days < 30
    ? warn(check, `expires in ${days} days, on ${until}`, 'replace it and send SIGHUP to reload')
    : ok(check, `valid until ${until}`);
}

/** Checks that no revocation list of a listener expires soon. @param untilMs - end of the first one, in ms since 1970 */
export function revocationFinding(check: string, untilMs: number | undefined, nowMs: number): Finding {
  if (untilMs === undefined) return ok(check, 'have no end that can be read');
  const until = new Date(untilMs).toISOString();
  if (nowMs >= untilMs)
    return fail(
      check,
      `the first expired on ${until}: no certificate of its authority is accepted`,
      'replace it and send SIGHUP to reload',
    );
  return untilMs - nowMs < revocationWarnedMs
    ? warn(check, `the first expires on ${until}`, 'replace it and send SIGHUP to reload')
    : ok(check, `valid until ${until}`);
}

/** Compares free space with the reserve, below which a node refuses writes. @param configured - `raft.disk_reserve` in bytes */
export function diskFinding(space: DiskSpace, configured: number): Finding {
  const { freeBytes, totalBytes } = space;
  const reserveBytes = reserveIn(totalBytes, { reserveBytes: configured });
  const mib = (bytes: number): string => `${Math.floor(bytes / 2 ** 20)} MiB`;
  const found = `${mib(freeBytes)} free, ${mib(reserveBytes)} reserved`;
  if (freeBytes < reserveBytes) return fail('disk', found, 'make room on the disk: the node refuses writes below the reserve');
  if (freeBytes < 2 * reserveBytes)
    return warn('disk', found, 'make room on the disk soon: the node refuses writes below the reserve');
  return isCapped(totalBytes, configured)
    ? warn('disk', `${found} of the ${mib(configured)} of raft.disk_reserve`, 'enlarge the volume, or set at most 5 % of it')
    : ok('disk', found);
}
