import { AccessError, RateLimited } from '@transitd/access';
import { AuditError } from '@transitd/audit';
import { clusterRefusalStatuses, clusterRefusals, refusalText } from '@transitd/cluster';
import { type RefusalStatus, type Reply, refusalReply, refused, refusedForNow } from '@transitd/http';
import { MountError } from '@transitd/node';
import { SnapshotError } from '@transitd/snapshot-archive';
import { TransitError } from '@transitd/transit-engine';

/** The refusals with which a request may end. */
const refusals = [...clusterRefusals, AccessError, AuditError, MountError, SnapshotError, TransitError] as const;
type AnsweredRefusal = InstanceType<(typeof refusals)[number]>;

/** Maps each code to a status; a missing code does not compile. Client errors are 400 unless HTTP has a more specific status. */
export const statuses: Readonly<Record<AnsweredRefusal['code'], RefusalStatus>> = {
  ...clusterRefusalStatuses,
  audit_failed: refused(503), // the message reports the outcome; the next request tries the audit device again
  bad_token: refused(403),
  busy_generation: refusedForNow(503),
  busy_logins: refusedForNow(503),
  claim_refused: refused(400),
  deletion_not_allowed: refused(400),
  invalid_ciphertext: refused(400),
  invalid_mount: refused(400),
  invalid_policy: refused(400),
  invalid_token: refused(400),
  key_not_found: refused(400), // an operation on a missing key; reading a missing key is not_found
  key_version_unavailable: refused(400),
  keys_unavailable: refusedForNow(503),
  locked_out: refused(403),
  login_refused: refused(403),
  managed_key_unavailable: refusedForNow(503), // the PKCS#11 token fails, not this node
  mount_removed: refused(404),
  not_restorable: refused(400),
  not_supported: refused(400),
  policy_too_large: refused(413),
  rate_limited: refused(429), // the error contains a time for Retry-After
  record_unreadable: refused(500),
  review_unavailable: refusedForNow(503),
  soft_deleted: refused(400),
  too_many_conflicts: refusedForNow(503),
  too_many_rules: refused(403),
  unconfirmed: refusedForNow(503),
};

/** Returns whether an error is an expected refusal. Any other error is internal and must not be reported as a client error. */
export const isRefusal = (error: unknown): error is AnsweredRefusal => refusals.some((each) => error instanceof each);

/** Returns the reply to a refusal. @param warnings - about the members of the request */
export function errorReply(refusal: AnsweredRefusal, warnings: readonly string[] = []): Reply {
  const status = statuses[refusal.code];
  return refusalReply(
    refusal instanceof RateLimited ? { ...status, retryAfterSeconds: refusal.resetS } : status,
    refusalText(refusal),
    warnings,
  );
}
