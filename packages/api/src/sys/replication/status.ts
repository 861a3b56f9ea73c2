import { boolean, dataReply, integer, list, object, RequestError, string, time, unavailable } from '@transitd/http';
import type { KeptDivergence, KeptPromotion, KeptReports, Node } from '@transitd/node';
import * as answers from '../../operation/answers.ts';
import { guardedOnSecondary, type OpenOperation, open, type Route } from '../../operation/operation.ts';

/** When the other cluster was heard last. */
const heartbeatSchema = { last_heartbeat: time, last_heartbeat_duration_ms: integer };

const promotionFields = {
  position: integer,
  lossless: boolean,
  missing: integer,
  misses_restore: boolean,
} as const;

const divergenceFields = { node_id: string, snapshot: string, time: time, point: integer, position: integer } as const;

const drStatusSchema = object(
  { mode: string },
  {
    state: string,
    cluster_id: string,
    epoch: integer,
    last_dr_wal: integer,
    last_wal: integer,
    last_remote_wal: integer,
    merkle_root: string,
    known_secondaries: list(string),
    secondaries: list(
      object(
        { node_id: string, connection_status: string },
        { last_wal: integer, lag_entries: integer, lag_ms: integer, unproven_epoch: integer, ...heartbeatSchema },
      ),
    ),
    secondary_id: string,
    connection_status: string,
    misses_restore: boolean,
    stop_reason: { enum: ['digest_differs', 'primary_is_older', 'state_unusable'] },
    known_primary_cluster_addrs: list(string),
    primaries: list(object({ cluster_address: string, connection_status: string }, heartbeatSchema)),
    lag_entries: integer,
    lag_ms: integer,
    fence: object({ state: string, fence_after_ms: integer }, { secondary: string, last_heartbeat_duration_ms: integer }),
    acknowledge: object({ mode: string, timeout_ms: integer, on_timeout: string }),
    replication_primary_canary_age_ms: integer,
    diverged_state: string,
    promotion: object(
      { time: time, force: boolean, ...promotionFields },
      { primary_position: integer, lag_entries: integer, lag_ms: integer, last_contact_ms: integer },
    ),
    divergence: object(divergenceFields),
  },
);

/** These operations need no token and also run on a secondary: the answers contain positions, but nothing of the records. */
const always = { unaudited: true, onSecondary: true } as const satisfies Partial<OpenOperation>;

/** Reads the replication of this cluster, as known to this node. */
const status = open({
  ...always,
  name: 'replication-status',
  about: 'Read whether this cluster takes part in replication, as known to this node',
  answers: answers.data(object({ dr: drStatusSchema, performance: object({ mode: string }) })),
  run: (node) => dataReply({ dr: drStatusOf(node), performance: { mode: 'disabled' } }),
});

/** Reads the disaster-recovery replication of this cluster, as known to this node. */
const drStatus = open({
  ...always,
  name: 'replication-dr-status',
  about: 'Read the disaster-recovery replication of this cluster, as known to this node',
  answers: answers.data(drStatusSchema),
  run: (node) => dataReply(drStatusOf(node)),
});

/** @throws RequestError of {@link unavailable} */
function drStatusOf(node: Node) {
  if (node.member === undefined || node.sealStatus.sealed) throw unavailable(node);
  const { replicationStatus: known } = node.eligibility;
  if (known === undefined) return { mode: 'disabled' };
  const { mode, role, set, epoch, position, digest } = known;
  const replication = node.member?.replication;
  return {
    mode,
    state: role,
    cluster_id: set,
    ...(epoch !== undefined && { epoch }),
    ...(role === 'secondary' ? { last_remote_wal: position } : { last_wal: position, last_dr_wal: position }),
    ...(digest !== undefined && { merkle_root: digest.toString(16).padStart(64, '0') }),
    ...(role === 'primary' || role === 'demoted' ? secondariesOf(node) : role === 'secondary' ? primaryOf(node) : {}),
    ...(role === 'secondary' && canaryOf(node)),
    ...fenceOf(node),
    ...(role === 'primary' && acknowledgeOf(node)),
    ...(replication?.diverged.newest !== undefined && { diverged_state: replication.diverged.newest }),
    ...(replication !== undefined && reportsOf(node, replication.reports)),
  };
}

/** Returns whether this primary uses key material only once its secondaries have it; undefined while it uses it at once. */
function acknowledgeOf({ member }: Node) {
  const settings = member?.replication?.material.setting.last;
  return (
    settings && {
      acknowledge: { mode: 'key_material', timeout_ms: settings.timeoutMs, on_timeout: settings.onTimeout },
    }
  );
}

/** Returns the age of the primary's canary, which each node of a secondary knows; the difference of the clocks is part of it. */
function canaryOf({ member }: Node) {
  const utcMs = member?.peers?.canaryUtcMs;
  return utcMs !== undefined && { replication_primary_canary_age_ms: Date.now() - utcMs };
}

/** Reads what this cluster lost when it returned as a former primary. */
const divergence = guardedOnSecondary({
  use: 'reads',
  name: 'replication-dr-divergence',
  about: 'Read how many changes this former primary lost when it followed its successor, as known to this node',
  capability: 'read',
  sudo: true,
  where: 'here',
  answers: answers.data(
    object({
      ...divergenceFields,
      ...{ written: integer, deleted: integer, key_versions: integer, tokens: integer, revoked_tokens: integer },
    }),
  ),
  run: (node) => {
    const kept = node.member?.replication?.reports.divergence;
    if (kept === undefined) throw new RequestError('not_found', 'this cluster has lost no changes to a successor');
    const { written, deleted, keyVersions, tokens, revokedTokens } = kept;
    return dataReply({
      ...divergenceJson(kept),
      ...{ written, deleted, key_versions: keyVersions, tokens, revoked_tokens: revokedTokens },
    });
  },
});

/** Returns the last promotion of this cluster, and what was lost when it returned as a former primary. Each node knows both. */
function reportsOf({ eligibility }: Node, reports: KeptReports) {
  const promotion = eligibility.replication && reports.promotion(eligibility.replication);
  const { divergence } = reports;
  return {
    ...(promotion !== undefined && { promotion: keptPromotionJson(promotion) }),
    ...(divergence !== undefined && { divergence: divergenceJson(divergence) }),
  };
}

const keptPromotionJson = ({
  utcMs,
  isForced,
  position,
  lossless,
  missing,
  missesRestore,
  primaryPosition,
  lag,
  silentMs,
}: KeptPromotion): object => ({
  ...{ time: new Date(utcMs).toISOString(), force: isForced, position, lossless, missing, misses_restore: missesRestore },
  ...(primaryPosition !== undefined && { primary_position: primaryPosition }),
  ...(lag !== undefined && { lag_entries: lag.entries }),
  ...(lag?.ms !== undefined && { lag_ms: Math.round(lag.ms) }),
  ...(silentMs !== undefined && { last_contact_ms: Math.round(silentMs) }),
});

/** Leaves out the counts: that revoked tokens exist again is not for callers without a token. */
const divergenceJson = ({ node, archive, utcMs, point, position }: KeptDivergence) => ({
  ...{ node_id: node, snapshot: archive, time: new Date(utcMs).toISOString(), point, position },
});

/** Returns the fence of a primary, which only the active node knows. */
function fenceOf({ active, member }: Node) {
  const { state = 'off', afterMs, secondary, silentMs } = member?.replication?.fence.status ?? {};
  if (!active || state === 'off' || afterMs === undefined) return {};
  return {
    fence: {
      ...{ state, fence_after_ms: afterMs },
      ...(secondary !== undefined && { secondary }),
      ...(silentMs !== undefined && { last_heartbeat_duration_ms: Math.round(silentMs) }),
    },
  };
}

/** Returns the secondaries, which only the active node knows. */
function secondariesOf({ active, member }: Node) {
  const replication = member?.replication;
  if (!active || replication === undefined) return {};
  const { secondaries } = replication;
  return {
    known_secondaries: secondaries.map(({ secondary }) => secondary),
    secondaries: secondaries.map(({ secondary, isConnected, acknowledged, lag, silentMs, unprovenEpoch }) => ({
      node_id: secondary,
      connection_status: isConnected ? 'connected' : 'disconnected',
      ...(acknowledged !== undefined && { last_wal: acknowledged }),
      ...(lag !== undefined && { lag_entries: lag.entries, lag_ms: Math.round(lag.ms) }),
      ...(unprovenEpoch !== undefined && { unproven_epoch: unprovenEpoch }),
      ...heartbeatOf(silentMs),
    })),
  };
}

/** Returns when the other cluster was heard last. */
const heartbeatOf = (silentMs: number | undefined) =>
  silentMs !== undefined && {
    last_heartbeat: new Date(Date.now() - silentMs).toISOString(),
    last_heartbeat_duration_ms: Math.round(silentMs),
  };

/** Returns the connection to the primary, which only the active node has. If it is not connected, the log has the reason. */
function primaryOf({ member }: Node) {
  const primary = member?.replication?.primary;
  if (primary === undefined) return {};
  const { secondary, addresses, connection, address = '', lag, silentMs, stopped, missesRestore } = primary;
  return {
    secondary_id: secondary,
    connection_status: connection,
    ...(missesRestore && { misses_restore: true }),
    ...(stopped !== undefined && { stop_reason: stopped }),
    known_primary_cluster_addrs: addresses,
    primaries: [
      {
        cluster_address: address,
        connection_status: connection,
        ...heartbeatOf(silentMs),
      },
    ],
    lag_entries: lag.entries,
    ...(lag.ms !== undefined && { lag_ms: Math.round(lag.ms) }),
  };
}

export const replicationRoutes: readonly Route[] = [
  { path: 'sys/replication/status', operations: { GET: status } },
  { path: 'sys/replication/dr/status', operations: { GET: drStatus } },
  { path: 'sys/replication/dr/divergence', operations: { GET: divergence } },
];
