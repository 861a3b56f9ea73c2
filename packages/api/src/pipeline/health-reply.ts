import type { IncomingMessage } from 'node:http';
import { healthAnswer, healthResponseText, parseHealthQuery } from '@transitd/health';
import { namesNamespace, type Reply, type RequestPath } from '@transitd/http';
import type { Node } from '@transitd/node';

/** Returns whether a request may skip the queue for event-loop turns. Only `sys/health` may, and only in the spelling that probes use. */
export const isProbe = ({ url = '' }: IncomingMessage): boolean => url === '/v1/sys/health' || url.startsWith('/v1/sys/health?');

/** Returns whether the path is `sys/health`. With a trailing slash, the path is unknown. */
export const asksHealth = ({ path, trailingSlash }: RequestPath): boolean => path === 'sys/health' && !trailingSlash;

/** Answers health probes from memory, before authentication, body and limits, so that load balancers get an answer under any load. */
export function healthReply(node: Pick<Node, 'status'>, { method, headers }: IncomingMessage, { query }: RequestPath): Reply {
  // A refused HEAD has no body, so it has no content type either, not even that of the GET.
  const refused = (status: number, errors: readonly string[]): Reply =>
    method === 'HEAD' ? { status } : { status, errors: errors };
  if (method !== 'GET' && method !== 'HEAD') return refused(405, []);
  if (namesNamespace(headers)) return refused(400, ['operation unavailable in namespaces']);
  const requested = parseHealthQuery(query);
  if (requested === undefined) return refused(400, []);
  const answer = healthAnswer(node.status, requested, { monotonicMs: performance.now(), utcMs: Date.now() });
  return { status: answer.code, body: healthResponseText(answer) };
}
