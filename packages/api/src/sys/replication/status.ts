import { boolean, dataReply, integer, list, object, RequestError, string, time, unavailable } from '@transitd/http';
import type { Node } from '@transitd/node';
import type { ClusterReplication, KeptDivergence, KeptPromotion } from '@transitd/replication';
import * as answers from '../../operation/answers.ts';
import { guardedOnSecondary, type OpenOperation, open, type Route } from '../../operation/operation.ts';
import { type Members, rounded, shown, timeText } from '../../operation/shown.ts';

/** When the other cluster was heard last. */
const heartbeatMembers: Members<{ readonly silentMs?: number | undefined }> = {
  'last_heartbeat?': [time, ({ silentMs }) => timeText(silentMs === undefined ? undefined : Date.now() - silentMs)],
  'last_heartbeat_duration_ms?': [integer, ({ silentMs }) => rounded(silentMs)],
};

/** A promotion, without when and how it was asked for. */
export type PromotionFigures = Omit<KeptPromotion, 'id' | 'isForced' | 'utcMs'>;

/** The position of a promotion, and what the cluster knew of its primary. Numbers are in the audit log as they are. */
export const promotionMembers: Members<PromotionFigures> = {
  position: [integer, ({ position }) => position],
  lossless: [boolean, ({ lossless }) => lossless],
  missing: [integer, ({ missing }) => missing],
  misses_restore: [boolean, ({ missesRestore }) => missesRestore],
  'primary_position?': [integer, ({ primaryPosition }) => primaryPosition],
  'lag_entries?': [integer, ({ lag }) => lag?.entries],
  'lag_ms?': [integer, ({ lag }) => rounded(lag?.ms)],
  'last_contact_ms?': [integer, ({ silentMs }) => rounded(silentMs)],
};

const shownPromotion = shown<KeptPromotion>({
  time: [time, ({ utcMs }) => timeText(utcMs)],
  force: [boolean, ({ isForced }) => isForced],
  ...promotionMembers,
});

/** Leaves out the counts: that revoked tokens exist again is not for callers without a token. */
const shownDivergence = shown<KeptDivergence>({
  node_id: [string, ({ node }) => node],
  snapshot: [string, ({ archive }) => archive],
  time: [time, ({ utcMs }) => timeText(utcMs)],
  point: [integer, ({ point }) => point],
  position: [integer, ({ position }) => position],
});

const shownSecondary = shown<ClusterReplication['secondaries'][number]>({
  node_id: [string, ({ secondary }) => secondary],
  connection_status: [string, ({ isConnected }) => (isConnected ? 'connected' : 'disconnected')],
  'last_wal?': [integer, ({ acknowledged }) => acknowledged],
  'lag_entries?': [integer, ({ lag }) => lag?.entries],
  'lag_ms?': [integer, ({ lag }) => rounded(lag?.ms)],
  'unproven_epoch?': [integer, ({ unprovenEpoch }) => unprovenEpoch],
  ...heartbeatMembers,
});

const shownPrimary = shown<NonNullable<ClusterReplication['primary']>>({
  cluster_address: [string, ({ address = '' }) => address],
  connection_status: [string, ({ connection }) => connection],
  ...heartbeatMembers,
});

const shownFence = shown<ClusterReplication['fence']['status']>({
  state: [string, ({ state }) => state],
  fence_after_ms: [integer, ({ afterMs }) => afterMs],
  'secondary?': [string, ({ secondary }) => secondary],
  'last_heartbeat_duration_ms?': [integer, ({ silentMs }) => rounded(silentMs)],
});

/** Whether this primary uses key material only once its secondaries have it. */
const shownAcknowledge = shown<NonNullable<ClusterReplication['material']['setting']['last']>>({
  mode: [string, () => 'key_material'],
  timeout_ms: [integer, ({ timeoutMs }) => timeoutMs],
  on_timeout: [string, ({ onTimeout }) => onTimeout],
});

const mapped = <T, R>(value: T | undefined, map: (value: T) => R): R | undefined =>
  value === undefined ? undefined : map(value);

/** A cluster that takes part in replication, as known to this node. */
interface DrView {
  readonly node: Node;
  readonly known: NonNullable<Node['eligibility']['replicationStatus']>;
  readonly replication: ClusterReplication | undefined;
}

/** Returns the secondaries, which only the active node knows. */
const secondariesOf = ({ node: { active }, known: { role }, replication }: DrView) =>
  active && (role === 'primary' || role === 'demoted') ? replication?.secondaries : undefined;

/** Returns the connection to the primary, which only the active node has. If it is not connected, the log has the reason. */
const primaryOf = ({ known: { role }, replication }: DrView) => (role === 'secondary' ? replication?.primary : undefined);

/** Returns the fence of a primary, which only the active node knows. */
function fenceOf({ node, replication }: DrView) {
  const { status } = replication?.fence ?? {};
  return node.active && status !== undefined && status.state !== 'off' && status.afterMs !== undefined ? status : undefined;
}

/** Returns the age of the primary's canary, which each node of a secondary knows; the difference of the clocks is part of it. */
function canaryAgeMs({ node: { member }, known: { role } }: DrView): number | undefined {
  const utcMs = member?.peers.canaryUtcMs;
  return role === 'secondary' && utcMs !== undefined ? Date.now() - utcMs : undefined;
}

/** Returns the last promotion of this cluster, which each node knows. */
const promotionOf = ({ node: { eligibility }, replication }: DrView) =>
  eligibility.replication && replication?.reports.promotion(eligibility.replication);

const shownDr = shown<DrView>({
  mode: [string, ({ known }) => known.mode],
  'state?': [string, ({ known }) => known.role],
  'cluster_id?': [string, ({ known }) => known.set],
  'epoch?': [integer, ({ known }) => known.epoch],
  'last_remote_wal?': [integer, ({ known }) => (known.role === 'secondary' ? known.position : undefined)],
  'last_wal?': [integer, ({ known }) => (known.role === 'secondary' ? undefined : known.position)],
  'last_dr_wal?': [integer, ({ known }) => (known.role === 'secondary' ? undefined : known.position)],
  'merkle_root?': [string, ({ known }) => known.digest?.toString(16).padStart(64, '0')],
  'known_secondaries?': [list(string), (view) => secondariesOf(view)?.map(({ secondary }) => secondary)],
  'secondaries?': [list(shownSecondary.schema), (view) => secondariesOf(view)?.map(shownSecondary.json)],
  'secondary_id?': [string, (view) => primaryOf(view)?.secondary],
  'connection_status?': [string, (view) => primaryOf(view)?.connection],
  'misses_restore?': [boolean, (view) => primaryOf(view)?.missesRestore || undefined],
  'stop_reason?': [{ enum: ['digest_differs', 'primary_is_older', 'state_unusable'] }, (view) => primaryOf(view)?.stopped],
  'known_primary_cluster_addrs?': [list(string), (view) => primaryOf(view)?.addresses],
  'primaries?': [list(shownPrimary.schema), (view) => mapped(primaryOf(view), (primary) => [shownPrimary.json(primary)])],
  'lag_entries?': [integer, (view) => primaryOf(view)?.lag.entries],
  'lag_ms?': [integer, (view) => rounded(primaryOf(view)?.lag.ms)],
  'replication_primary_canary_age_ms?': [integer, canaryAgeMs],
  'fence?': [shownFence.schema, (view) => mapped(fenceOf(view), shownFence.json)],
  'acknowledge?': [
    shownAcknowledge.schema,
    ({ known, replication }) =>
      known.role === 'primary' ? mapped(replication?.material.setting.last, shownAcknowledge.json) : undefined,
  ],
  'diverged_state?': [string, ({ replication }) => replication?.diverged.newest],
  'promotion?': [shownPromotion.schema, (view) => mapped(promotionOf(view), shownPromotion.json)],
  'divergence?': [shownDivergence.schema, ({ replication }) => mapped(replication?.reports.divergence, shownDivergence.json)],
});

/** These operations need no token and also run on a secondary: the answers contain positions, but nothing of the records. */
const always = { unaudited: true, onSecondary: true } as const satisfies Partial<OpenOperation>;

/** Reads the replication of this cluster, as known to this node. */
const status = open({
  ...always,
  name: 'replication-status',
  about: 'Read whether this cluster takes part in replication, as known to this node',
  answers: answers.data(object({ dr: shownDr.schema, performance: object({ mode: string }) })),
  run: (node) => dataReply({ dr: drStatusOf(node), performance: { mode: 'disabled' } }),
});

/** Reads the disaster-recovery replication of this cluster, as known to this node. */
const drStatus = open({
  ...always,
  name: 'replication-dr-status',
  about: 'Read the disaster-recovery replication of this cluster, as known to this node',
  answers: answers.data(shownDr.schema),
  run: (node) => dataReply(drStatusOf(node)),
});

/** @throws RequestError of {@link unavailable} */
function drStatusOf(node: Node): object {
  if (node.member === undefined || node.sealStatus.sealed) throw unavailable(node);
  const { replicationStatus: known } = node.eligibility;
  return known === undefined ? { mode: 'disabled' } : shownDr.json({ node, known, replication: node.member.replication });
}

const shownLoss = shown<KeptDivergence>({
  ...shownDivergence.members,
  written: [integer, ({ written }) => written],
  deleted: [integer, ({ deleted }) => deleted],
  key_versions: [integer, ({ keyVersions }) => keyVersions],
  tokens: [integer, ({ tokens }) => tokens],
  revoked_tokens: [integer, ({ revokedTokens }) => revokedTokens],
});

/** Reads what this cluster lost when it returned as a former primary. */
const divergence = guardedOnSecondary({
  use: 'reads',
  name: 'replication-dr-divergence',
  about: 'Read how many changes this former primary lost when it followed its successor, as known to this node',
  capability: 'read',
  sudo: true,
  where: 'here',
  answers: answers.data(shownLoss.schema),
  run: (node) => {
    const kept = node.member?.replication?.reports.divergence;
    if (kept === undefined) throw new RequestError('not_found', 'this cluster has lost no changes to a successor');
    return dataReply(shownLoss.json(kept));
  },
});

export const replicationRoutes: readonly Route[] = [
  { path: 'sys/replication/status', operations: { GET: status } },
  { path: 'sys/replication/dr/status', operations: { GET: drStatus } },
  { path: 'sys/replication/dr/divergence', operations: { GET: divergence } },
];
