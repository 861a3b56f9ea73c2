/** Maximum length of a reason, in UTF-16 code units. */
const reasonCharactersMax = 300;

/**
 * Returns the first of the `errors` in a refusal, as one short line of printable characters: the text comes from a node that is not
 * verified, and is logged. Undefined if the answer has no such text.
 */
export function untrustedReason(answer: unknown): string | undefined {
  const errors = typeof answer === 'object' && answer !== null && 'errors' in answer ? answer.errors : undefined;
  const [first] = Array.isArray(errors) ? errors : [];
  return typeof first === 'string'
    ? first.slice(0, reasonCharactersMax).replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '?')
    : undefined;
}
