import type { PathRule, Policy } from './policy.ts';

/** How long compiled policies are used while the two clocks disagree about a rule, in milliseconds. */
const disagreementMs = 1000;

/**
 * Returns the rules of a policy that have not expired. A rule that has expired by only one of the two clocks still restricts but
 * grants nothing, so a wrong clock neither ends a denial early nor extends a right. Such a rule gets a short expiry, so that it is
 * checked again soon.
 * @param nowMs - time of the later clock, in milliseconds since the epoch
 * @param dueNowMs - time of the earlier clock
 */
export function inForce(
  policy: Policy,
  { nowMs, dueNowMs }: { readonly nowMs: number; readonly dueNowMs: number },
): readonly PathRule[] {
  const holds = ({ expiresMs }: PathRule): boolean => expiresMs === undefined || expiresMs > nowMs;
  if (policy.every(holds)) return policy;
  return policy.flatMap((each) => {
    if (holds(each)) return each;
    const { path, rule, expiresMs = 0 } = each;
    return expiresMs > dueNowMs ? { path, rule: { ...rule, capabilities: 0 }, expiresMs: nowMs + disagreementMs } : [];
  });
}
