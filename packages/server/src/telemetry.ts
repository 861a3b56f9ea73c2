import type { IncomingMessage, RequestListener } from 'node:http';
import { asksHealth, healthReply, isProbe } from '@transitd/api';
import { turns } from '@transitd/event-loop';
import { parsePath, type Reply, sendReply } from '@transitd/http';
import type { Node } from '@transitd/node';
import type { Metrics } from './metrics/metrics.ts';
import { openMetricsType, plainType, prefersOpenMetrics } from './metrics/text-formats.ts';

/**
 * Creates the telemetry handler. It serves only `/metrics` and `/v1/sys/health`, without TLS or token, also on a sealed node, so that
 * an alert on `core_unsealed 0` can fire.
 */
export function createTelemetry(node: Node, metrics: Metrics): RequestListener {
  const answer = async (req: IncomingMessage): Promise<Reply> => {
    if (req.method !== 'GET' && req.method !== 'HEAD') return { status: 405, errors: [] };
    if (req.url === '/metrics') {
      const isOpen = prefersOpenMetrics(req.headers.accept);
      const body = await (isOpen ? metrics.openMetrics() : metrics.prometheus());
      return { status: 200, body, headers: { 'Content-Type': isOpen ? openMetricsType : plainType, Vary: 'Accept' } };
    }
    const path = parsePath(req.url ?? '');
    return asksHealth(path) ? healthReply(node, req, path) : { status: 404, errors: [] };
  };
  return async (req, res) => {
    if (!isProbe(req)) await turns.next();
    if (res.destroyed) return;
    const reply = await answer(req).catch((): Reply => ({ status: 404, errors: [] }));
    sendReply(res, reply, { head: req.method === 'HEAD' });
  };
}
