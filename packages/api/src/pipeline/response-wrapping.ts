import type { Principal } from '@transitd/access';
import { bodyBytesOf, type Encoded, encode, joined, type Reply, wrapReply } from '@transitd/http';
import type { Services } from '@transitd/node';
import { StoreError, transactionBytesMax } from '@transitd/storage-fsm';

/**
 * Wraps a reply that has a JSON body. A reply that cannot be wrapped is not sent at all. If it contains a new token, which the caller has
 * not seen, the token is revoked.
 */
export async function wrapped(
  { wrapping, registry }: Services,
  reply: Reply,
  { path, wrapTtlS, owner }: { readonly path: string; readonly wrapTtlS: number; readonly owner: string },
): Promise<Reply> {
  const { status, issued } = reply;
  if (reply.headers?.['Content-Type'] !== undefined) return reply;
  try {
    const encoded = encode(reply);
    if (encoded.body === undefined) return reply;
    checkSize(bodyBytesOf(encoded.body));
    const body = joined(encoded.body) + (await restOf(encoded));
    const answer = { owner, status, path, ttlS: wrapTtlS, wrappedAccessor: issued?.accessor ?? '', body };
    return wrapReply(await wrapping.wrap(answer));
  } catch (error) {
    if (issued !== undefined) await registry.revoke({ token: issued.token }).catch(() => false); // otherwise the token ends with its TTL
    throw error;
  }
}

/** Checked before the body is joined and encoded as a record, which takes long for a body that cannot be stored anyway. */
function checkSize(bytes: number): void {
  if (bytes > transactionBytesMax) throw new StoreError('too_large', 'the response is too large to be wrapped');
}

/** Returns the part of a body that is in a stream. @throws StoreError `too_large` if it cannot be stored */
async function restOf({ stream }: Encoded): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    checkSize(bytes);
  }
  return Buffer.concat(chunks).toString();
}

/**
 * Returns the caller to whose share a wrapped response counts: the user or role of a login, so that further logins give no further share,
 * or else the token.
 */
export const ownerOf = ({ id, record }: Principal): string => record.source || id;
