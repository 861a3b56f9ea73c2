import type { Outcome } from './errors.ts';

/**
 * How to treat a failed request.
 * - `final`: report the error
 * - `again`: it was not done; retry at this or another address
 * - `elsewhere`: it was not done; retry only at another address
 * - `unknown`: it may have been done; retry only if it is safe to repeat
 */
export type Verdict = 'final' | 'again' | 'elsewhere' | 'unknown';

/** The parts of a response that determine the verdict. */
export interface FailedAnswer {
  readonly status: number;
  readonly errors: readonly string[];
  readonly retryAfterS: number | undefined;
}

/**
 * Texts of errors with an unknown outcome. The second text means that the request took effect but could not be audited, so its response was
 * withheld.
 */
const outcomeUnknown = /^outcome unknown|^audit: .*\b(?:took|taken) effect\b/;
const doesNotServe = /^transitd is (?:sealed|not initialized)$/;
const otherCluster = /^X-Service-Index belongs to another cluster$/;

/** Returns whether the server refused the index because it is from another cluster. The request may be repeated without it. */
export const isOfOtherCluster = ({ errors }: FailedAnswer): boolean => errors.some((text) => otherCluster.test(text));

/** Returns the verdict about an error response. */
export function verdictOfAnswer(answer: FailedAnswer): Verdict {
  const { status, errors, retryAfterS } = answer;
  if (errors.some((text) => outcomeUnknown.test(text))) return 'unknown';
  if (isOfOtherCluster(answer)) return 'again';
  if (status < 500) return status === 412 && retryAfterS !== undefined ? 'again' : 'final';
  if (status === 501) return 'final';
  if (status !== 503) return 'unknown';
  if (errors.some((text) => doesNotServe.test(text))) return 'elsewhere';
  // Refusals by the server have an error text. A response without one comes from a proxy, which does not know whether the request was done.
  if (errors.length === 0) return 'unknown';
  return retryAfterS === undefined ? 'final' : 'again';
}

/** Failures to establish a connection: no request was sent. */
const neverConnected = new Set([
  'ECONNREFUSED',
  'EAI_AGAIN',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
/** Failures to establish a connection that a retry does not fix: an unknown host or a bad certificate. */
const notTransient =
  /^(?:ENOTFOUND|CERT_|ERR_TLS_CERT|ERR_TLS_HANDSHAKE|ERR_SSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|INVALID_CA|HOSTNAME_MISMATCH)/;

/**
 * Returns the verdict about a failed connection.
 * @param codes - of all errors, including attempts at several IP addresses of one host
 */
export function verdictOfFailure(codes: readonly string[]): Verdict {
  if (codes.length > 0 && codes.every((code) => neverConnected.has(code))) return 'again';
  if (codes.length > 0 && codes.every((code) => neverConnected.has(code) || notTransient.test(code))) return 'elsewhere';
  return 'unknown';
}

export const outcomeOf = (verdict: Verdict): Outcome => (verdict === 'unknown' ? 'unknown' : 'not_done');

/** Returns whether a request with this verdict may be repeated. */
export const mayRepeat = (verdict: Verdict, { repeatable }: { readonly repeatable: boolean }): boolean =>
  verdict === 'again' || verdict === 'elsewhere' || (verdict === 'unknown' && repeatable);

const [firstWaitMs, longestWaitMs] = [200, 5_000];

/** Returns the wait after round `round`, from 1: the time that the server suggests, else an exponential backoff; at most 5 s. */
export const waitMs = (round: number, retryAfterS: number | undefined): number =>
  Math.min(longestWaitMs, retryAfterS === undefined ? firstWaitMs * 2 ** (round - 1) : retryAfterS * 1000);
