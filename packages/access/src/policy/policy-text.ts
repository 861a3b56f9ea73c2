import { isUtf8 } from 'node:buffer';
import { runAtOnce, type Steps } from '@transitd/event-loop';
import { AccessError } from '../values/errors.ts';
import { Acl, permits } from './acl.ts';
import type { Capability } from './capability.ts';
import { PolicyMistake, PolicyMistakes, positionOf } from './document.ts';
import { parseHcl } from './hcl.ts';
import { parseJson } from './json.ts';
import type { Parameters } from './parameter-values.ts';
import { type ParsedPolicy, type Policy, readPolicy } from './policy.ts';

/** Maximum length of a policy's text, in bytes of UTF-8. */
export const policyBytesMax = 1024 * 1024;
/** Maximum number of values in a policy, which are checked before any of them is built: twenty for each rule and more. */
export const policyValuesMax = 2 ** 17;
const scannedPerStep = 16 * 1024;

/**
 * Returns a policy's text, decoded if it is base64. No policy text is valid base64 by itself.
 * @throws AccessError `invalid_policy`, `policy_too_large`
 */
export function plainText(given: string): string {
  if (given === '') throw new AccessError('invalid_policy', "'policy' parameter not supplied or empty");
  if (given.length > 2 * policyBytesMax) throw tooLarge();
  const base64 = given.replace(/[\r\n]+/g, '');
  const encoded = base64.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(base64);
  const bytes = encoded ? Buffer.from(base64, 'base64') : Buffer.from(given, 'utf8');
  if (bytes.length > policyBytesMax) throw tooLarge();
  if (!isUtf8(bytes)) throw new AccessError('invalid_policy', 'failed to parse policy: the base64 text is not UTF-8');
  return bytes.toString('utf8');
}

/** Returns a policy's text as {@link plainText} does; the given text if it cannot be a policy. */
export function plainPolicyText(given: string): string {
  try {
    return plainText(given);
  } catch {
    return given; // the write will refuse it
  }
}

const tooLarge = (): AccessError => new AccessError('policy_too_large', `a policy must have at most ${policyBytesMax} bytes`);

/**
 * Parses a policy: JSON if the text begins with a brace, else HCL.
 * @throws AccessError `invalid_policy` with line and column of each mistake
 */
export function* policySteps(text: string): Steps<ParsedPolicy> {
  try {
    yield* checkValues(text);
    return yield* readPolicy(yield* /^\s*\{/.test(text) ? parseJson(text) : parseHcl(text));
  } catch (error) {
    const mistakes = error instanceof PolicyMistakes ? error.mistakes : error instanceof PolicyMistake ? [error] : undefined;
    if (mistakes === undefined) throw error;
    const faults = mistakes.map(({ at, message }) => `${positionOf(text, at)}: ${message}`);
    throw new AccessError('invalid_policy', `failed to parse policy: ${faults.join('; ')}`);
  }
}

/** Counts the characters that come before a value, also in texts and comments: most policies have a hundred times fewer. */
function* checkValues(text: string): Steps<void> {
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (at % scannedPerStep === scannedPerStep - 1) yield;
    if ('{[,='.includes(text.charAt(at))) values += 1;
    if (values > policyValuesMax) throw new PolicyMistake(at, `a policy must have at most ${policyValuesMax} values`);
  }
}

/**
 * Parses a policy without yielding to other work, for short texts and command-line tools.
 * @throws AccessError `invalid_policy` with line and column
 */
export const parsePolicy = (text: string): Policy => runAtOnce(policySteps(text)).policy;

/**
 * Returns whether a policy alone permits a request. No server is needed.
 * @param text - HCL or JSON, plain or base64
 * @param path - below `/v1/`, without a trailing slash
 * @param parameters - the fields of the request's body, an object without a prototype
 * @param nowMs - milliseconds since the epoch, for rules with an expiration
 * @throws AccessError `invalid_policy`, `policy_too_large`
 */
export function policyPermits(
  text: string,
  request: { readonly path: string; readonly capability: Capability; readonly parameters: Parameters },
  nowMs: number,
): boolean {
  const inForce = parsePolicy(plainText(text)).filter(({ expiresMs = Number.POSITIVE_INFINITY }) => expiresMs > nowMs);
  return permits(new Acl([inForce]), { ...request, wrapTtlS: 0 });
}
