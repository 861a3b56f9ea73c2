import type { Node } from '@transitd/node';
import type { ClusterReplication } from '@transitd/replication';
import { takesPart } from '@transitd/storage-fsm';
import { type MetricRow, type MetricTarget, type NodeSource, registerRows } from './register.ts';

type Secondary = ClusterReplication['secondaries'][number];
type Value = number | boolean | undefined;

/** Registers the gauges of replication. A gauge without a value is absent: on standbys, and on clusters that do not replicate. */
export function registerReplicationMetrics(target: MetricTarget, node: NodeSource): void {
  const gauges = (name: string, help: string, label: string | undefined, rows: (view: View) => readonly MetricRow[]): void =>
    registerRows(target, { name: `replication_${name}`, help, label }, () => {
      const view = viewOf(node());
      return view === undefined ? [] : rows(view);
    });
  const gauge = (name: string, help: string, value: (view: View) => Value): void =>
    gauges(name, help, undefined, (view) => [[undefined, value(view)]]);
  const ofSecondaries = (name: string, help: string, value: (secondary: Secondary) => Value): void =>
    gauges(name, help, 'secondary', ({ secondaries }) => secondaries.map((each) => [each.secondary, value(each)]));

  // On a primary, or on a cluster that was one.
  ofSecondaries(
    'secondary_connected',
    '1 if the secondary is connected to this primary, otherwise 0',
    ({ isConnected }) => isConnected,
  );
  ofSecondaries('secondary_lag_entries', 'Log entries that the secondary has not confirmed', ({ lag }) => lag?.entries);
  ofSecondaries(
    'secondary_lag_seconds',
    'Age of the oldest log entry that the secondary has not confirmed, in seconds',
    ({ lag }) => seconds(lag?.ms),
  );
  ofSecondaries(
    'secondary_unproven_claim',
    '1 if the secondary has named a later epoch and not proved it, otherwise 0',
    ({ unprovenEpoch }) => unprovenEpoch !== undefined,
  );
  gauge('states_sent', 'Whole states that this node has sent to secondaries since its start', ({ statesSent }) => statesSent);
  gauge(
    'fence_closed',
    '1 while this primary refuses writes because of its fence, otherwise 0; absent without a fence',
    ({ fence: { status } }) => (status.state === 'off' ? undefined : status.state === 'closed'),
  );
  gauge(
    'fence_remaining_seconds',
    'Time after which this primary refuses writes unless a secondary answers, in seconds; absent without a fence',
    ({ fence }) => {
      const { state, silentMs, afterMs } = fence.status;
      const isRunning = state !== 'off' && afterMs !== undefined && silentMs !== undefined;
      return isRunning ? Math.max(0, afterMs - silentMs) / 1000 : undefined;
    },
  );
  gauge(
    'key_material_refused',
    'Requests since the start of this node that made no key material because a secondary was not connected',
    ({ material }) => material.setting.last && material.counts.refused,
  );
  gauge(
    'key_material_late',
    'Requests since the start of this node whose key material is used later, because a secondary did not confirm it in time',
    ({ material }) => material.setting.last && material.counts.late,
  );
  gauge(
    'key_material_degraded',
    'Times since the start of this node that key material was used which a secondary had not confirmed',
    ({ material }) => material.setting.last && material.counts.degraded,
  );

  // On a secondary.
  gauge(
    'connected',
    '1 if this secondary is connected to its primary, otherwise 0',
    ({ primary }) => primary && primary.connection === 'connected',
  );
  gauge(
    'lag_entries',
    'Log entries of the primary that this secondary knows of and lacks',
    ({ primary }) => primary?.lag.entries,
  );
  gauge('lag_seconds', 'Age of the state of this secondary, in seconds, also while it is disconnected', ({ primary }) =>
    seconds(primary?.lag.ms),
  );
  gauge(
    'primary_canary_age_seconds',
    "Age of the newest record of the primary's clock on this secondary, in seconds, with the difference of the clocks",
    ({ primary, canaryUtcMs }) => (primary && canaryUtcMs !== undefined ? (Date.now() - canaryUtcMs) / 1000 : undefined),
  );
  gauge(
    'digest_differs',
    '1 if this secondary has stopped because its records differ from those of its primary, otherwise 0',
    ({ primary }) => primary && primary.stopped === 'digest_differs',
  );
  gauge(
    'stopped',
    '1 if this secondary has stopped following its primary until an operator has decided, otherwise 0',
    ({ primary }) => primary && primary.stopped !== undefined,
  );
}

/** Replication with another cluster, as the active node of a primary or of a secondary sees it at one time. */
interface View extends Pick<ClusterReplication, 'secondaries' | 'statesSent' | 'primary' | 'fence' | 'material'> {
  readonly canaryUtcMs: number | undefined;
}

function viewOf(node: Node | undefined): View | undefined {
  const replication = node?.member?.replication;
  if (replication === undefined || !node?.active || !takesPart(node.eligibility.replicationStatus)) return undefined;
  const { secondaries, statesSent, primary, fence, material } = replication;
  return { secondaries, statesSent, primary, fence, material, canaryUtcMs: node.member?.peers.canaryUtcMs };
}

const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);
