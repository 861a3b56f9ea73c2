import type { PrimaryLinkStatus, ReplicationPort } from '@transitd/cluster';
import type { Registry } from '@transitd/replication';
import type { EpochName } from '@transitd/storage-fsm';

/** The state of the primary as its secondary knows it. */
export interface PrimaryView extends PrimaryLinkStatus {
  /** Name of this cluster at the primary. */
  readonly secondary: string;
  readonly addresses: readonly string[];
  /** The primary was restored from a backup, and this cluster has the state from before. */
  readonly missesRestore: boolean;
}

/** The state of a secondary as its primary knows it. */
export interface SecondaryView {
  readonly secondary: string;
  readonly isConnected: boolean;
  /** The service index that it has confirmed on this connection. */
  readonly acknowledged?: number | undefined;
  readonly lag?: { readonly entries: number; readonly ms: number };
  /** Time since it was heard. */
  readonly silentMs?: number;
  /** The number of a later epoch that it has named without a proof. */
  readonly unprovenEpoch?: number;
}

/** Returns each registered secondary, with its connection if there is one. */
export function secondaryViews(
  { registrations }: Pick<Registry, 'registrations'>,
  connections: ReplicationPort['connected'],
  claims: ReadonlyMap<string, EpochName>,
): readonly SecondaryView[] {
  const connected = new Map(connections.map((one) => [one.secondary, one]));
  return registrations.map(({ secondary }) => {
    const connection = connected.get(secondary);
    const unprovenEpoch = claims.get(secondary)?.number;
    const claim = unprovenEpoch === undefined ? {} : { unprovenEpoch };
    if (connection === undefined) return { secondary, isConnected: false, ...claim };
    const { acknowledged, lag, silentMs } = connection;
    return { ...claim, secondary, isConnected: true, acknowledged: acknowledged?.index, lag, silentMs };
  });
}
