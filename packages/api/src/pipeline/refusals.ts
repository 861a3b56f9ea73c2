import { AccessError, RateLimited } from '@transitd/access';
import type { BarrierError } from '@transitd/barrier';
import { clusterRefusalAnswers, isClusterRefusal, type JoinError, refusalText } from '@transitd/cluster';
import { type Answer, type Reply, type RequestError, refusalReply, refused, refusedForNow } from '@transitd/http';
import type { StoreError } from '@transitd/storage-fsm';
import { TransitError } from '@transitd/transit-engine';

export type Refusal = AccessError | BarrierError | JoinError | RequestError | StoreError | TransitError;

/**
 * Maps each error code to a status. If a code is missing here, the code does not compile. Client errors are 400 unless HTTP has a more
 * specific status.
 */
export const answers: Readonly<Record<Refusal['code'], Answer>> = {
  ...clusterRefusalAnswers,
  bad_token: refused(403),
  busy_generation: refusedForNow(503),
  busy_logins: refusedForNow(503),
  deletion_not_allowed: refused(400),
  invalid_ciphertext: refused(400),
  invalid_policy: refused(400),
  invalid_token: refused(400),
  key_not_found: refused(400), // an operation on a missing key; reading a missing key is not_found
  key_version_unavailable: refused(400),
  keys_unavailable: refusedForNow(503),
  locked_out: refused(403),
  managed_key_unavailable: refusedForNow(503), // the PKCS#11 token fails, not this node
  not_supported: refused(400),
  policy_too_large: refused(413),
  rate_limited: refused(429), // the error contains a time for Retry-After
  record_unreadable: refused(500),
  too_many_conflicts: refusedForNow(503),
  too_many_rules: refused(403),
  unconfirmed: refusedForNow(503),
};

/** Returns whether an error is an expected refusal. Any other error is internal and must not be reported as a client error. */
export const isRefusal = (error: unknown): error is Refusal =>
  isClusterRefusal(error) || error instanceof TransitError || error instanceof AccessError;

/** Returns the reply to a refusal. @param warnings - about the members of the request */
export function errorReply(refusal: Refusal, warnings: readonly string[] = []): Reply {
  const answer = answers[refusal.code];
  return refusalReply(
    refusal instanceof RateLimited ? { ...answer, retryAfterSeconds: refusal.resetS } : answer,
    refusalText(refusal),
    warnings,
  );
}
