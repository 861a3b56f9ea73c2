import { expect } from 'chai';
import { Registry } from 'prom-client';
import { type ReplicationFigures, registerReplicationMetrics } from '../src/metrics/replication.ts';

describe('the metrics of replication', () => {
  const linesOf = async (figures: ReplicationFigures | undefined): Promise<readonly string[]> => {
    const registry = new Registry();
    registerReplicationMetrics({ prefix: 'svc', registers: [registry], replication: () => figures });
    return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  };

  it('are absent on a cluster that does not replicate', async () => {
    expect(await linesOf(undefined)).to.deep.equal([]);
  });

  it('show each secondary and the fence on a primary', async () => {
    const secondaries = [
      { secondary: 'west', isConnected: true, lag: { entries: 3, ms: 20 } },
      { secondary: 'south', isConnected: false, unprovenEpoch: 9 },
    ];
    const fence = { isClosed: false, remainingMs: 4_000 };
    const keyMaterial = { refused: 1, late: 2, degraded: 0 };
    expect(await linesOf({ secondaries, statesSent: 2, fence, keyMaterial })).to.deep.equal([
      'svc_replication_secondary_connected{secondary="west"} 1',
      'svc_replication_secondary_connected{secondary="south"} 0',
      'svc_replication_secondary_lag_entries{secondary="west"} 3',
      'svc_replication_secondary_lag_seconds{secondary="west"} 0.02',
      'svc_replication_secondary_unproven_claim{secondary="west"} 0',
      'svc_replication_secondary_unproven_claim{secondary="south"} 1',
      'svc_replication_states_sent 2',
      'svc_replication_fence_closed 0',
      'svc_replication_fence_remaining_seconds 4',
      'svc_replication_key_material_refused 1',
      'svc_replication_key_material_late 2',
      'svc_replication_key_material_degraded 0',
    ]);
  });

  it('show the connection, the lag and a different digest on a secondary', async () => {
    const primary = {
      isConnected: false,
      digestDiffers: true,
      isStopped: true,
      lag: { entries: 5, ms: undefined },
      canaryAgeMs: 700,
    };
    expect(await linesOf({ secondaries: [], statesSent: 0, primary })).to.deep.equal([
      'svc_replication_states_sent 0',
      'svc_replication_connected 0',
      'svc_replication_lag_entries 5',
      'svc_replication_primary_canary_age_seconds 0.7',
      'svc_replication_digest_differs 1',
      'svc_replication_stopped 1',
    ]);
  });
});
