import { flag, type MetricRow, type MetricTarget, registerRows } from './register.ts';

/** Replication with another cluster, as the active node of a primary or of a secondary sees it. */
export interface ReplicationFigures {
  /** On a primary, or on a cluster that was one. */
  readonly secondaries: readonly {
    readonly secondary: string;
    readonly isConnected: boolean;
    readonly lag?: { readonly entries: number; readonly ms: number } | undefined;
    /** The number of a later epoch that it has named without a proof. */
    readonly unprovenEpoch?: number | undefined;
  }[];
  /** Whole states sent since the start of this node. */
  readonly statesSent: number;
  /** Undefined if the set has no fence, or this cluster is not the primary. */
  readonly fence?: { readonly isClosed: boolean; readonly remainingMs?: number | undefined } | undefined;
  /** How often key material was not confirmed in time, since the start of this node; undefined while it need not be confirmed. */
  readonly keyMaterial?: { readonly refused: number; readonly late: number; readonly degraded: number } | undefined;
  /** On a secondary. */
  readonly primary?:
    | {
        readonly isConnected: boolean;
        readonly digestDiffers: boolean;
        /** For whatever reason, until an operator has decided. */
        readonly isStopped: boolean;
        readonly lag: { readonly entries: number; readonly ms: number | undefined };
        /** Age of the newest canary that has arrived; undefined before the first. */
        readonly canaryAgeMs?: number | undefined;
      }
    | undefined;
}

type GaugeOf = (
  name: string,
  help: string,
  rows: (figures: ReplicationFigures) => readonly MetricRow[],
  label?: 'secondary',
) => void;

/** Registers the gauges of replication. A gauge without a value is absent: on standbys, and on clusters that do not replicate. */
export function registerReplicationMetrics({
  replication,
  ...target
}: MetricTarget & { readonly replication: () => ReplicationFigures | undefined }): void {
  const gauge: GaugeOf = (name, help, rows, label) =>
    registerRows(target, { name: `replication_${name}`, help, label }, () => {
      const figures = replication();
      return figures === undefined ? [] : rows(figures);
    });
  registerOfPrimary(gauge);
  registerOfSecondary(gauge);
}

const one = (value: number | undefined): readonly MetricRow[] => (value === undefined ? [] : [[undefined, value]]);

const seconds = (ms: number | undefined): readonly MetricRow[] => one(ms === undefined ? undefined : ms / 1000);

function registerOfPrimary(gauge: GaugeOf): void {
  gauge(
    'secondary_connected',
    '1 if the secondary is connected to this primary, otherwise 0',
    ({ secondaries }) => secondaries.map(({ secondary, isConnected }): MetricRow => [secondary, flag(isConnected)]),
    'secondary',
  );
  gauge(
    'secondary_lag_entries',
    'Log entries that the secondary has not confirmed',
    ({ secondaries }) => secondaries.flatMap(({ secondary, lag }): MetricRow[] => (lag ? [[secondary, lag.entries]] : [])),
    'secondary',
  );
  gauge(
    'secondary_lag_seconds',
    'Age of the oldest log entry that the secondary has not confirmed, in seconds',
    ({ secondaries }) => secondaries.flatMap(({ secondary, lag }): MetricRow[] => (lag ? [[secondary, lag.ms / 1000]] : [])),
    'secondary',
  );
  gauge(
    'secondary_unproven_claim',
    '1 if the secondary has named a later epoch and not proved it, otherwise 0',
    ({ secondaries }) =>
      secondaries.map(({ secondary, unprovenEpoch }): MetricRow => [secondary, flag(unprovenEpoch !== undefined)]),
    'secondary',
  );
  gauge('states_sent', 'Whole states that this node has sent to secondaries since its start', ({ statesSent }) =>
    one(statesSent),
  );
  gauge(
    'fence_closed',
    '1 while this primary refuses writes because of its fence, otherwise 0; absent without a fence',
    ({ fence }) => one(fence && flag(fence.isClosed)),
  );
  gauge(
    'fence_remaining_seconds',
    'Time after which this primary refuses writes unless a secondary answers, in seconds; absent without a fence',
    ({ fence }) => seconds(fence?.remainingMs),
  );
  gauge(
    'key_material_refused',
    'Requests since the start of this node that made no key material because a secondary was not connected',
    ({ keyMaterial }) => one(keyMaterial?.refused),
  );
  gauge(
    'key_material_late',
    'Requests since the start of this node whose key material is used later, because a secondary did not confirm it in time',
    ({ keyMaterial }) => one(keyMaterial?.late),
  );
  gauge(
    'key_material_degraded',
    'Times since the start of this node that key material was used which a secondary had not confirmed',
    ({ keyMaterial }) => one(keyMaterial?.degraded),
  );
}

function registerOfSecondary(gauge: GaugeOf): void {
  gauge('connected', '1 if this secondary is connected to its primary, otherwise 0', ({ primary }) =>
    one(primary && flag(primary.isConnected)),
  );
  gauge('lag_entries', 'Log entries of the primary that this secondary knows of and lacks', ({ primary }) =>
    one(primary?.lag.entries),
  );
  gauge('lag_seconds', 'Age of the state of this secondary, in seconds, also while it is disconnected', ({ primary }) =>
    seconds(primary?.lag.ms),
  );
  gauge(
    'primary_canary_age_seconds',
    "Age of the newest record of the primary's clock on this secondary, in seconds, with the difference of the clocks",
    ({ primary }) => seconds(primary?.canaryAgeMs),
  );
  gauge(
    'digest_differs',
    '1 if this secondary has stopped because its records differ from those of its primary, otherwise 0',
    ({ primary }) => one(primary && flag(primary.digestDiffers)),
  );
  gauge(
    'stopped',
    '1 if this secondary has stopped following its primary until an operator has decided, otherwise 0',
    ({ primary }) => one(primary && flag(primary.isStopped)),
  );
}
