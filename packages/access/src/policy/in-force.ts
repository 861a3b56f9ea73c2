import type { PathRule, Policy } from './policy.ts';

/** How long a set of policies is used in which the two clocks disagree about a rule, in milliseconds. */
const disagreementMs = 1000;

/**
 * Returns the rules of a policy that have not reached their time. A rule that has reached it by one of the two clocks alone grants nothing, and
 * still restricts: a wrong clock ends neither a denial early nor a right late. Such a rule is to be looked at again soon.
 * @param nowMs - by the later clock, in milliseconds since the epoch
 * @param dueNowMs - by the earlier clock
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
