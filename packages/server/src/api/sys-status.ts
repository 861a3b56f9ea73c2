import { RequestError } from '../http/error-answer.ts';
import type { Reply } from '../http/reply.ts';
import { unavailable } from '../http/unavailable.ts';
import type { Metrics } from '../metrics.ts';
import type { GuardedOperation, OpenOperation, Route } from './operation.ts';

/** Who leads, as this node knows it. */
const leader: OpenOperation = {
  name: 'leader',
  access: 'open',
  unaudited: true,
  run: (node) => {
    const status = node.replicaStatus;
    if (status === undefined || node.sealStatus.sealed) throw unavailable(node);
    const isSelf = node.active;
    const leading = isSelf
      ? { apiAddress: node.apiAddress, clusterAddress: node.config.cluster_addr ?? '' }
      : node.cluster?.activeMember;
    const body = {
      ha_enabled: true,
      ...(isSelf && { is_self: true, active_time: node.activeSince?.toISOString() }),
      ...(leading && { leader_address: leading.apiAddress }),
      ...(leading && leading.clusterAddress !== '' && { leader_cluster_address: leading.clusterAddress }),
      raft_committed_index: status.commitIndex,
      raft_applied_index: status.appliedIndex,
    };
    return { status: 200, body: `${JSON.stringify(body)}\n` };
  },
};

/** Metrics in the text exposition format, or as JSON when no format is asked for. */
export async function metricsReply(metrics: Metrics, format: string): Promise<Reply> {
  if (format === 'prometheus') {
    return {
      status: 200,
      body: await metrics.prometheus(),
      headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
    };
  }
  if (format !== '') throw new RequestError('invalid_request', `metric response format "${format.slice(0, 32)}" unknown`);
  return { status: 200, body: `${JSON.stringify(await metrics.json(new Date()))}\n` };
}

/** Where this node stands, and its figures. */
export function statusRoutes(metrics: Metrics): readonly Route[] {
  const read: GuardedOperation = {
    name: 'metrics',
    access: 'token',
    where: 'here',
    capability: 'read',
    run: (_context, { query }) => metricsReply(metrics, query.get('format') ?? ''),
  };
  return [
    { path: 'sys/leader', operations: { GET: leader } },
    { path: 'sys/metrics', operations: { GET: read } },
  ];
}
