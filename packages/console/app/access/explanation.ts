import { listIn, objectIn, textIn, textsIn } from '../api/json.ts';

/** The decision of one policy alone about a path, as `sys/policies/check` returns it. */
export interface PolicyDecision {
  readonly policy: string;
  readonly capabilities: readonly string[];
  /** Path or pattern of the rule that decides; empty if no rule matches. */
  readonly rule: string;
  /** Why the policy could not be evaluated; empty if it was. */
  readonly error: string;
}

/** The rights that a request needs. */
export interface Needed {
  readonly capability: string;
  /** Whether it needs `sudo` as well. */
  readonly sudo: boolean;
}

export interface Explanation {
  readonly isAllowed: boolean;
  readonly sentences: readonly string[];
}

/** Reads the first decision in the answer of `sys/policies/check`. */
export function decisionIn(policy: string, data: unknown): PolicyDecision {
  const { capabilities, rule } = objectIn(listIn(objectIn(data)['decisions'])[0]);
  return { policy, capabilities: textsIn(capabilities), rule: textIn(rule), error: '' };
}

/**
 * Explains the node's decision in words. For each path one rule counts, the one for the exact path or else the most specific pattern,
 * whatever policy it is in.
 * @param granted - capabilities of the token on the path, by the node
 * @param decisions - of each policy of the token alone
 * @param deciding - path or pattern of the rule that decides in all policies together; undefined if that is not known
 */
export function explain(
  granted: readonly string[],
  { capability, sudo }: Needed,
  decisions: readonly PolicyDecision[],
  deciding: string | undefined,
): Explanation {
  if (granted.includes('root')) return { isAllowed: true, sentences: ['It is a root token: policies are not consulted.'] };
  const lacksSudo = sudo && !granted.includes('sudo');
  const isAllowed = granted.includes(capability) && !lacksSudo;
  const matching = decisions.filter(({ rule }) => rule !== '');
  const isComplete = decisions.every(({ error }) => error === '');
  const sentences = matching.map(({ policy, rule, capabilities }) =>
    deciding === undefined || rule === deciding
      ? `Policy ${policy} has the rule "${rule}", which ${effectOf(capabilities)}.`
      : `Policy ${policy} has the rule "${rule}"; it does not count here, because "${deciding}" is more specific.`,
  );
  if (matching.length === 0 && isComplete)
    sentences.push('No policy of the token has a rule for this path, and nothing is granted by default.');
  for (const { policy, error } of decisions)
    if (error !== '') sentences.push(`Policy ${policy} could not be evaluated: ${error}.`);
  if (lacksSudo && matching.length > 0) sentences.push('This request needs sudo as well, which is not granted.');
  if (isAllowed) sentences.push('A rule may still restrict parameters.');
  return { isAllowed, sentences };
}

const effectOf = (capabilities: readonly string[]): string =>
  capabilities.includes('deny') ? 'denies it' : `grants ${capabilities.join(', ')}`;
