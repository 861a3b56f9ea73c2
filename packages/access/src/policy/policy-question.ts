import { Acl, permits } from './acl.ts';
import type { Capability } from './capability.ts';
import type { Parameters } from './parameters.ts';
import { parsePolicy, plainText } from './policy-text.ts';

/**
 * What a policy by itself would say to a request, without a server.
 * @param text - as it would be written: HCL or JSON, plain or base64
 * @param path - below `/v1/`, without a slash at its end
 * @param parameters - the request's members, without a prototype
 * @param nowMs - milliseconds since the epoch, for rules with an expiration
 * @throws AccessError `invalid_policy`, `policy_too_large`
 */
export function policyPermits(
  text: string,
  asked: { readonly path: string; readonly capability: Capability; readonly parameters: Parameters },
  nowMs: number,
): boolean {
  const inForce = parsePolicy(plainText(text)).filter(({ expiresMs = Number.POSITIVE_INFINITY }) => expiresMs > nowMs);
  return permits(new Acl([inForce]), { ...asked, wrapTtlS: 0 });
}
