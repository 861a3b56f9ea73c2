import type { Dashboard } from './panels.ts';

/** The row of replication with another cluster: empty on a cluster that does not replicate. */
export const replicationRow: Dashboard['rows'][number] = [
  {
    title: 'Replication lag',
    description:
      'Age of the oldest entry that a secondary has not confirmed, and age of the state of this cluster as a secondary.',
    unit: 's',
    queries: [
      ['svc_replication_secondary_lag_seconds', '{{secondary}}'],
      ['svc_replication_lag_seconds', 'this secondary'],
    ],
  },
  {
    title: 'Replication lag (entries)',
    description: 'Entries that a secondary has not confirmed, and entries that this cluster lacks as a secondary.',
    unit: 'short',
    queries: [
      ['svc_replication_secondary_lag_entries', '{{secondary}}'],
      ['svc_replication_lag_entries', 'this secondary'],
    ],
  },
  {
    title: 'Replication connections',
    description: '1 if connected. A different digest stops a secondary until an operator has looked.',
    unit: 'short',
    queries: [
      ['svc_replication_secondary_connected', '{{secondary}}'],
      ['svc_replication_connected', 'to the primary'],
      ['svc_replication_digest_differs', 'digest differs'],
      ['svc_replication_secondary_unproven_claim', 'unproved claim of {{secondary}}'],
      ['increase(svc_replication_states_sent[10m])', 'whole states sent'],
    ],
  },
  {
    title: 'Time until the fence closes',
    description: 'With fence_after only. At 0 the primary refuses writes.',
    unit: 's',
    queries: [
      ['svc_replication_fence_remaining_seconds', 'remaining'],
      ['svc_replication_fence_closed', 'closed'],
    ],
  },
  {
    title: 'Key material that secondaries did not confirm in time',
    description: 'With acknowledge key_material only.',
    unit: 'short',
    queries: [
      ['increase(svc_replication_key_material_refused[10m])', 'refused'],
      ['increase(svc_replication_key_material_late[10m])', 'late'],
      ['increase(svc_replication_key_material_degraded[10m])', 'used without a confirmation'],
    ],
  },
];
