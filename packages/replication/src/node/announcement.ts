import { type EpochName, type ReplicationState, sameEpoch } from '@transitd/storage-fsm';

/**
 * Time of the announcements while the former primary follows, and their period. An attempt at a node that does not answer takes five
 * seconds, and the first node is tried twice: each of five nodes is reached, even if only the last one answers.
 */
const [rareMs, periodMs] = [30_000, 600_000];

/** The former primary of this one, as this node knows it now. */
export interface FormerPrimary {
  /** Id of its cluster; undefined if this cluster never had another primary. */
  readonly cluster: string | undefined;
  readonly registrations: readonly { readonly secondary: string; readonly cluster: string }[];
  readonly connected: readonly { readonly secondary: string; readonly acknowledged: EpochName | undefined }[];
}

/**
 * Returns whether a primary calls its former primary now, to announce the new epoch to it, which ends the writes of the former one.
 * A former primary that follows refuses these calls, so they become rare. They never end, because a copy of its data may be what follows,
 * while the original has just started again. Only present connections count: a former primary that disconnects is called at once.
 */
export function announcesEpoch({ role, epochs }: ReplicationState, former: FormerPrimary, nowMs: number): boolean {
  if (role !== 'primary') return false;
  const epoch = epochs.at(-1);
  const names = former.registrations.filter(({ cluster }) => cluster === former.cluster).map(({ secondary }) => secondary);
  const isFollowed = former.connected.some(
    ({ secondary, acknowledged }) =>
      names.includes(secondary) && acknowledged !== undefined && epoch !== undefined && sameEpoch(acknowledged, epoch),
  );
  return !isFollowed || nowMs % periodMs < rareMs;
}
