import { type Reply, wrapReply } from '@transitd/http';
import type { Services } from '@transitd/node';

/**
 * Wraps a reply that has a JSON body. A reply that cannot be wrapped is not sent at all. If it contains a new token, which the caller has
 * not seen, the token is revoked.
 */
export async function wrapped(
  { wrapping, registry }: Services,
  reply: Reply,
  { path, wrapTtlS }: { readonly path: string; readonly wrapTtlS: number },
): Promise<Reply> {
  const { status, body, issued } = reply;
  if (body === undefined || reply.headers?.['Content-Type'] !== undefined) return reply;
  try {
    return wrapReply(
      status,
      await wrapping.wrap({ status, body, path, ttlS: wrapTtlS, wrappedAccessor: issued?.accessor ?? '' }),
    );
  } catch (error) {
    if (issued !== undefined) await registry.revoke({ token: issued.token }).catch(() => false); // otherwise the token ends with its TTL
    throw error;
  }
}
