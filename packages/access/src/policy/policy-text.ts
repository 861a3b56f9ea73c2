import { isUtf8 } from 'node:buffer';
import { AccessError } from '../errors.ts';
import { runAtOnce, type Steps } from '../scheduling/steps.ts';
import { Acl, permits } from './acl.ts';
import type { Capability } from './capability.ts';
import { PolicyMistake, positionOf } from './document.ts';
import { parseHcl } from './hcl.ts';
import { parseJson } from './json.ts';
import type { Parameters } from './parameters.ts';
import { type ParsedPolicy, type Policy, readPolicy } from './policy.ts';

/** Longest text of a policy, in bytes of UTF-8. */
export const policyBytesMax = 1024 * 1024;

/**
 * A policy's text as its author wrote it: base64 of it is undone, which no policy is by itself.
 * @throws AccessError `invalid_policy`, `policy_too_large`
 */
export function plainText(given: string): string {
  if (given === '') throw new AccessError('invalid_policy', "'policy' parameter not supplied or empty");
  if (given.length > 2 * policyBytesMax) throw tooLarge();
  const base64 = given.replace(/[\r\n]+/g, '');
  const encoded = base64.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(base64);
  const bytes = encoded ? Buffer.from(base64, 'base64') : Buffer.from(given, 'utf8');
  if (bytes.length > policyBytesMax) throw tooLarge();
  if (!isUtf8(bytes)) throw new AccessError('invalid_policy', 'failed to parse policy: the base64 text holds no UTF-8');
  return bytes.toString('utf8');
}

const tooLarge = (): AccessError => new AccessError('policy_too_large', `a policy has at most ${policyBytesMax} bytes`);

/**
 * HCL, or JSON when the text begins with a brace.
 * @param strict - false for what was written before: it is read as far as it has an effect
 * @throws AccessError `invalid_policy` with line and column
 */
export function* policySteps(text: string, { strict }: { readonly strict: boolean }): Steps<ParsedPolicy> {
  try {
    return yield* readPolicy(yield* /^\s*\{/.test(text) ? parseJson(text) : parseHcl(text), { strict });
  } catch (error) {
    if (!(error instanceof PolicyMistake)) throw error;
    throw new AccessError('invalid_policy', `failed to parse policy: ${positionOf(text, error.at)}: ${error.message}`);
  }
}

/** The same at once, for texts that hold up nobody. @throws AccessError `invalid_policy` with line and column */
export const parsePolicy = (text: string): Policy => runAtOnce(policySteps(text, { strict: true })).policy;

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
