import type { Answer } from '../../process/live-server.ts';

/** The outcome of a call: it took effect, it certainly had and will have no effect, or it is unknown. */
export type Outcome =
  | { readonly kind: 'done'; readonly answer: Answer }
  | { readonly kind: 'refused'; readonly status: number; readonly text: string }
  | { readonly kind: 'unknown'; readonly text: string };

const saysUnknown = /outcome unknown/i;

/** The outcome is unknown after a 504, a 500, or an answer that says so. */
export function outcomeOf(answer: Answer): Outcome {
  const { status, text } = answer;
  if (status === 200 || status === 204) return { kind: 'done', answer };
  if (status === 500 || status === 504 || saysUnknown.test(text)) return { kind: 'unknown', text: `${status} ${text}` };
  return { kind: 'refused', status, text };
}

/** Whether the request was refused because there is no active node at the moment. Nothing was done, so it may be repeated. */
export function isRefusedForNow(answer: Answer): boolean {
  const outcome = outcomeOf(answer);
  return outcome.kind === 'refused' && outcome.status === 503;
}

/** Only a failed connection attempt certainly sent nothing. */
export function outcomeOfError(error: unknown): Outcome {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  // The code of a DOMException, such as a timeout, is a number that says nothing to a reader.
  const code = typeof cause === 'object' && cause !== null && 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  return code === 'ECONNREFUSED'
    ? { kind: 'refused', status: 0, text: code }
    : { kind: 'unknown', text: code === '' ? String(error) : code };
}

export const attempt = (ask: Promise<Answer>): Promise<Outcome> => ask.then(outcomeOf, outcomeOfError);
