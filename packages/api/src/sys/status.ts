import {
  anything,
  boolean,
  integer,
  list,
  object,
  plainReply,
  type Reply,
  RequestError,
  string,
  text,
  time,
  unavailable,
} from '@transitd/http';
import type { Node } from '@transitd/node';
import { StoreError } from '@transitd/storage-fsm';
import * as answers from '../operation/answers.ts';
import type { RenderedMetrics } from '../operation/metrics-port.ts';
import { guarded, open, type Route } from '../operation/operation.ts';

/** Reads which node is the leader, as known to this node. */
const leader = open({
  name: 'leader',
  about: 'Read which node is the leader, as known to this node',
  answers: answers.plain(
    object(
      { ha_enabled: boolean, raft_committed_index: integer, raft_applied_index: integer },
      { is_self: boolean, active_time: time, leader_address: string, leader_cluster_address: string },
    ),
  ),
  unaudited: true,
  onSecondary: true,
  run: (node) => {
    const status = node.member?.replica.status();
    if (status === undefined || node.sealStatus.sealed) throw unavailableToClients(node);
    const isSelf = node.active;
    const leading = isSelf
      ? { apiAddress: node.apiAddress, clusterAddress: node.config.cluster_addr ?? '' }
      : node.member?.peers.activeMember;
    return plainReply({
      ha_enabled: true,
      ...(isSelf && { is_self: true, active_time: node.activeSince?.toISOString() }),
      ...(leading && { leader_address: leading.apiAddress }),
      ...(leading && leading.clusterAddress !== '' && { leader_cluster_address: leading.clusterAddress }),
      raft_committed_index: status.commitIndex,
      raft_applied_index: status.appliedIndex,
    });
  },
});

/** `vault status` and `bao status` show the state of a sealed node only if this error contains their text. */
const unavailableToClients = (node: Node): StoreError =>
  new StoreError('sealed', `${unavailable(node).message} (Vault is sealed)`);

/** Returns metrics in the text exposition format, or as JSON if no format is requested. */
async function metricsReply(metrics: RenderedMetrics, format: string): Promise<Reply> {
  if (format === 'prometheus') {
    return {
      status: 200,
      body: await metrics.prometheus(),
      headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
    };
  }
  if (format !== '') throw new RequestError('invalid_request', `metric response format "${format.slice(0, 32)}" unknown`);
  return plainReply(await metrics.json(new Date()));
}

const metricsSchema = object({
  Timestamp: string,
  Gauges: list(anything),
  Points: list(anything),
  Counters: list(anything),
  Samples: list(anything),
});

/** Routes of the leader status and the metrics. */
export function statusRoutes(metrics: RenderedMetrics): readonly Route[] {
  const read = guarded({
    name: 'metrics',
    about: 'Read the metrics of this node',
    takes: { format: text('`prometheus`; omit for JSON', { oneOf: ['', 'prometheus'] }) },
    answers: answers.either(answers.plain(metricsSchema), 'text/plain', string),
    where: 'here',
    onSecondary: true,
    capability: 'read',
    run: (_context, { values }) => metricsReply(metrics, values.format ?? ''),
  });
  return [
    { path: 'sys/leader', operations: { GET: leader } },
    { path: 'sys/metrics', operations: { GET: read } },
  ];
}
