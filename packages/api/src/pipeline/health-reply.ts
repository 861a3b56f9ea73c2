import type { IncomingMessage } from 'node:http';
import { healthAnswer, healthResponseText, parseHealthQuery } from '@transitd/health';
import { errorsBody, namesNamespace, type Reply, type RequestPath } from '@transitd/http';
import type { Node } from '@transitd/node';

/** Whether a request may pass those that wait for a turn of the event loop: health as probes spell it. In other spellings it waits as they do. */
export const isProbe = ({ url = '' }: IncomingMessage): boolean => url === '/v1/sys/health' || url.startsWith('/v1/sys/health?');

/** Whether it is health that is asked. With a slash at the end it is a path like any other, and an unknown one. */
export const asksHealth = ({ path, trailingSlash }: RequestPath): boolean => path === 'sys/health' && !trailingSlash;

/** From memory, before authentication, body and limits: what load balancers ask, whatever else the node is doing. */
export function healthReply(node: Node, { method, headers }: IncomingMessage, { query }: RequestPath): Reply {
  // A refused HEAD has no body and so no content type, not even that of the GET.
  const refused = (status: number, errors: readonly string[]): Reply =>
    method === 'HEAD' ? { status } : { status, body: errorsBody(errors) };
  if (method !== 'GET' && method !== 'HEAD') return refused(405, []);
  if (namesNamespace(headers)) return refused(400, ['operation unavailable in namespaces']);
  const requested = parseHealthQuery(query);
  if (requested === undefined) return refused(400, []);
  const answer = healthAnswer(node.status, requested, { monotonicMs: performance.now(), utcMs: Date.now() });
  return { status: answer.code, body: healthResponseText(answer) };
}
