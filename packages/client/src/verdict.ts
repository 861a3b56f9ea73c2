import type { Outcome } from './errors.ts';

/**
 * What may be done about a request that failed. `final`: nothing, the answer stands. `again`: it was not done, and may be soon, here or
 * at another address. `elsewhere`: it was not done, and only another address may do it. `unknown`: it may have been done, so only
 * what is safe to repeat is repeated.
 */
export type Verdict = 'final' | 'again' | 'elsewhere' | 'unknown';

/** What of an answer decides. */
export interface FailedAnswer {
  readonly status: number;
  readonly errors: readonly string[];
  readonly retryAfterS: number | undefined;
}

/** The second: what was done could not be recorded, and its answer is withheld. */
const outcomeUnknown = /^outcome unknown|^audit: .*\b(?:took|taken) effect\b/;
const doesNotServe = /^transitd is (?:sealed|not initialized)$/;
const otherCluster = /^X-Service-Index is none of this cluster$/;

/** Whether an index was refused because it is of another cluster: without it the request may be asked again. */
export const isOfOtherCluster = ({ errors }: FailedAnswer): boolean => errors.some((text) => otherCluster.test(text));

/** @see Verdict */
export function verdictOfAnswer(answer: FailedAnswer): Verdict {
  const { status, errors, retryAfterS } = answer;
  if (errors.some((text) => outcomeUnknown.test(text))) return 'unknown';
  if (isOfOtherCluster(answer)) return 'again';
  if (status < 500) return status === 412 && retryAfterS !== undefined ? 'again' : 'final';
  if (status === 501) return 'final';
  if (status !== 503) return 'unknown';
  if (errors.some((text) => doesNotServe.test(text))) return 'elsewhere';
  // The server's own refusals have a text. Without one it was something in between, which knows nothing of the request.
  if (errors.length === 0) return 'unknown';
  return retryAfterS === undefined ? 'final' : 'again';
}

/** Failures of a connection that was never there: nothing was sent on it. */
const neverConnected = new Set([
  'ECONNREFUSED',
  'EAI_AGAIN',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** … and that time alone does not heal: the name, or the certificate. */
const neverWill =
  /^(?:ENOTFOUND|CERT_|ERR_TLS_CERT|ERR_TLS_HANDSHAKE|ERR_SSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|INVALID_CA|HOSTNAME_MISMATCH)/;

/** @param codes - of all that went wrong, the attempts at several addresses of one name included */
export function verdictOfFailure(codes: readonly string[]): Verdict {
  if (codes.length > 0 && codes.every((code) => neverConnected.has(code))) return 'again';
  if (codes.length > 0 && codes.every((code) => neverConnected.has(code) || neverWill.test(code))) return 'elsewhere';
  return 'unknown';
}

export const outcomeOf = (verdict: Verdict): Outcome => (verdict === 'unknown' ? 'unknown' : 'not_done');

/** Whether a request with this verdict may be sent once more. */
export const mayRepeat = (verdict: Verdict, { repeatable }: { readonly repeatable: boolean }): boolean =>
  verdict === 'again' || verdict === 'elsewhere' || (verdict === 'unknown' && repeatable);

const [firstWaitMs, longestWaitMs] = [200, 5_000];

/** How long to wait before round `round`, from 1: what the server asked for, else twice as long each time, up to 5 s. */
export const waitMs = (round: number, retryAfterS: number | undefined): number =>
  Math.min(longestWaitMs, retryAfterS === undefined ? firstWaitMs * 2 ** (round - 1) : retryAfterS * 1000);
