import { accessTurns, runInSlices, TimeSlice } from '@transitd/event-loop';
import { Acl, capabilitiesOn, decidingPath } from './acl.ts';
import type { Capability } from './capability.ts';
import { inForce } from './in-force.ts';
import type { ParsedPolicy } from './policy.ts';
import { plainText, policySteps } from './policy-text.ts';

/** The decision of one policy about one path. */
interface PathDecision {
  readonly path: string;
  readonly capabilities: readonly (Capability | 'deny')[];
  /** Path or pattern of the rule that decides; undefined if no rule matches, so that the policy grants nothing there. */
  readonly rule: string | undefined;
}

export interface PolicyCheck {
  /** Number of rules that have not expired. */
  readonly rules: number;
  /** Warnings about parts of the policy that have no effect. */
  readonly notices: readonly string[];
  readonly decisions: readonly PathDecision[];
}

/**
 * Parses a policy as a write does, and evaluates it alone. Stores nothing.
 * @param text - HCL or JSON, plain or base64
 * @param paths - below `/v1/`; with a trailing slash for a list
 * @throws AccessError `invalid_policy`, `policy_too_large`
 */
export async function checkPolicy(
  text: string,
  paths: readonly string[],
  clocks: { readonly nowMs: number; readonly dueNowMs: number },
): Promise<PolicyCheck> {
  const slice = new TimeSlice(accessTurns);
  const parsed = await runInSlices(policySteps(plainText(text)), slice);
  const rules = inForce(parsed.policy, clocks);
  const acl = await Acl.compile([rules]);
  const decisions: PathDecision[] = [];
  for (const path of paths) {
    if (slice.isOver) await slice.next();
    decisions.push({ path, capabilities: capabilitiesOn(acl, path), rule: decidingPath(acl, path) });
  }
  return { rules: rules.length, notices: noticesOf(parsed), decisions };
}

/** Returns the warnings for the author of a policy about parts that have no effect. */
export function noticesOf({ policy, notices }: ParsedPolicy): readonly string[] {
  const mistakes = pathMistakes.flatMap(([isMade, text]) => {
    const count = policy.filter(({ path }) => isMade(path)).length;
    return count === 0 ? [] : [`${count} of its paths ${text}`];
  });
  return [...notices, ...mistakes];
}

/** Paths that match nothing, or not what their author means: an intended denial would deny nothing. */
const pathMistakes: readonly (readonly [isMade: (path: string) => boolean, text: string])[] = [
  [(path) => path.startsWith('/') || path.includes('//'), 'have an empty segment: they match no request'],
  [(path) => path.slice(0, -1).includes('*'), 'have a * before their end: it matches only itself, use + for a whole segment'],
  [(path) => /[^/]\+|\+[^/]/.test(path), 'have a + beside other characters: it matches only itself, + must be a whole segment'],
  [(path) => path.startsWith('v1/'), 'begin with v1/: leave it out, unless a mount has this name'],
];
