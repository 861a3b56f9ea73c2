import type { RequestListener } from 'node:http';
import { healthAnswer, healthResponseText, parseHealthQuery } from '@transitd/health';
import { errorsBody } from './http/envelope.ts';
import { parsePath } from './http/path.ts';
import { type Reply, sendReply } from './http/reply.ts';
import type { Metrics } from './metrics.ts';
import type { Node } from './node/node.ts';

/**
 * The listener for scrapers: `/metrics` and `/v1/sys/health` without TLS or token, sealed too, so that an alert on
 * `core_unsealed 0` can fire. It serves nothing else.
 */
export function createTelemetry(node: Node, metrics: Metrics): RequestListener {
  const answer = async (method: string, url: string): Promise<Reply> => {
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, body: errorsBody([]), headers: { Connection: 'close' } };
    if (url === '/metrics') {
      return {
        status: 200,
        body: await metrics.prometheus(),
        headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
      };
    }
    const { path, query } = parsePath(url);
    const asked = path === 'sys/health' ? parseHealthQuery(query) : undefined;
    if (path !== 'sys/health') return { status: 404, body: errorsBody([]) };
    if (asked === undefined) return { status: 400, body: errorsBody([]) };
    const health = healthAnswer(node.status, asked, { monotonicMs: performance.now(), utcMs: Date.now() });
    return { status: health.code, body: healthResponseText(health) };
  };
  return (req, res) => {
    void answer(req.method ?? '', req.url ?? '')
      .catch((): Reply => ({ status: 404, body: errorsBody([]) }))
      .then((reply) => sendReply(res, reply, { head: req.method === 'HEAD' }));
  };
}
