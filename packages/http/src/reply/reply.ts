import type { ServerResponse } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { announcesBody } from './announced-body.ts';

/** An answer as plain data. Without `body` no content and no content type leave; a JSON body ends with a newline. */
export interface Reply {
  readonly status: number;
  readonly body?: string;
  /** In the place of `body`, as long as it takes; one that breaks cuts the connection, so that the caller sees that its end is missing. */
  readonly stream?: Readable;
  /** Spelled as `Content-Type`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A token that this answer shows and nobody has seen yet. */
  readonly issued?: { readonly token: string; readonly accessor: string };
}

/** On every answer, also over plain HTTP, as the peers send it. */
export const strictTransportSecurity = 'max-age=31536000; includeSubDomains';

/** Statuses whose answers carry no content (RFC 9110 §15.3.5, §15.3.6, §15.4.5). */
const contentless = (status: number): boolean => status === 204 || status === 205 || status === 304;

/** How long the rest of a body that nobody wants is read away, so that closing does not reset the answer out of the caller's hands. */
const lingerMs = 5_000;

/**
 * Writes `reply` and ends the response; a caller that has gone is no error. A request whose body was not read to its end ends the
 * connection: what follows on it is the rest of that body.
 * @param head - the request was HEAD: status and headers of the GET, without content and without its length
 */
export function sendReply(res: ServerResponse, reply: Reply, { head }: { readonly head: boolean }): void {
  const { status } = reply;
  const { req } = res;
  const unread = !req.readableEnded && announcesBody(req);
  const body = contentless(status) ? undefined : reply.body;
  const headers = ['Cache-Control', 'no-store', 'Strict-Transport-Security', strictTransportSecurity];
  let encoding: BufferEncoding = 'utf8';
  if (body !== undefined) {
    const bytes = Buffer.byteLength(body);
    if (bytes === body.length) encoding = 'latin1'; // all ASCII: latin1 writes the same bytes without encoding them
    if (reply.headers?.['Content-Type'] === undefined) headers.push('Content-Type', 'application/json');
    if (!head) headers.push('Content-Length', String(bytes));
  } else if (status !== 204 && status !== 304 && !head && reply.stream === undefined) {
    headers.push('Content-Length', '0');
  }
  if (unread) headers.push('Connection', 'close');
  for (const name in reply.headers) headers.push(name, reply.headers[name] ?? '');
  if (res.destroyed) {
    reply.stream?.destroy();
    return;
  }
  res.writeHead(status, headers);
  if (reply.stream !== undefined) {
    pipeline(reply.stream, res, () => undefined); // it destroys both
    return;
  }
  const content = head ? undefined : body;
  if (unread && !req.destroyed) endAfterDrain(res, content, encoding);
  else if (content === undefined) res.end();
  else res.end(content, encoding);
}

/** The caller may still be sending: it gets the whole answer now, the end of the connection once its body has been read away. */
function endAfterDrain(res: ServerResponse, content: string | undefined, encoding: BufferEncoding): void {
  const { req } = res;
  if (content === undefined) res.flushHeaders();
  else res.write(content, encoding);
  const deadline = setTimeout(() => res.end(), lingerMs);
  const end = () => {
    clearTimeout(deadline);
    res.end();
  };
  req.once('end', end).once('close', end);
  req.resume();
}
