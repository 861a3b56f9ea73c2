import { bodyText, type Reply, wrapReply } from '@transitd/http';
import type { Services } from '@transitd/node';
import { StoreError, transactionBytesMax } from '@transitd/storage-fsm';

/**
 * Wraps a reply that has a JSON body. A reply that cannot be wrapped is not sent at all. If it contains a new token, which the caller has
 * not seen, the token is revoked.
 */
export async function wrapped(
  { wrapping, registry }: Services,
  reply: Reply,
  { path, wrapTtlS }: { readonly path: string; readonly wrapTtlS: number },
): Promise<Reply> {
  const { status, issued } = reply;
  if (reply.body === undefined || reply.headers?.['Content-Type'] !== undefined) return reply;
  try {
    checkSize(lengthOf(reply.body));
    const body = bodyText(reply) + (await restOf(reply));
    return wrapReply(await wrapping.wrap({ status, body, path, ttlS: wrapTtlS, wrappedAccessor: issued?.accessor ?? '' }));
  } catch (error) {
    if (issued !== undefined) await registry.revoke({ token: issued.token }).catch(() => false); // otherwise the token ends with its TTL
    throw error;
  }
}

/** Checked before the body is joined and encoded as a record, which takes long for a body that cannot be stored anyway. */
function checkSize(bytes: number): void {
  if (bytes > transactionBytesMax) throw new StoreError('too_large', 'the response is too large to be wrapped');
}

const lengthOf = (body: NonNullable<Reply['body']>): number =>
  typeof body === 'string' ? body.length : body.reduce((sum, { length }) => sum + length, 0);

/** Returns the part of a body that is in a stream. @throws StoreError `too_large` if it cannot be stored */
async function restOf({ stream }: Reply): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    checkSize(bytes);
  }
  return Buffer.concat(chunks).toString();
}
