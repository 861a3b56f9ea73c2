import { type Reply, wrapReply } from '@transitd/http';
import type { Services } from '@transitd/node';

/**
 * The answer, or where it waits. One that cannot be wrapped is not given at all, and the token that it would have shown, and which nobody
 * has seen, is revoked.
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
    if (issued !== undefined) await registry.revoke({ token: issued.token }).catch(() => false); // it goes with its time
    throw error;
  }
}
