import type { Node } from '@transitd/node';
import { expect } from 'chai';
import { Registry } from 'prom-client';
import { registerReplicationMetrics } from '../src/metrics/replication.ts';

/** The active node of a cluster that replicates. */
const nodeWith = (replication: object, canaryUtcMs?: number): Node =>
  ({
    active: true,
    eligibility: { replicationStatus: { role: 'primary' } },
    member: { replication: { ...idle, ...replication }, peers: { canaryUtcMs } },
  }) as unknown as Node;

const idle = {
  secondaries: [],
  statesSent: 0,
  primary: undefined,
  fence: { status: { state: 'off' } },
  material: { setting: { last: undefined } },
};

describe('the metrics of replication', () => {
  const linesOf = async (node: Node | undefined): Promise<readonly string[]> => {
    const registry = new Registry();
    registerReplicationMetrics({ prefix: 'svc', registers: [registry] }, () => node);
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
    const fence = { status: { state: 'open', afterMs: 5_000, silentMs: 1_000 } };
    const material = { setting: { last: {} }, counts: { refused: 1, late: 2, degraded: 0 } };
    expect(await linesOf(nodeWith({ secondaries, statesSent: 2, fence, material }))).to.deep.equal([
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
    const primary = { connection: 'disconnected', stopped: 'digest_differs', lag: { entries: 5, ms: undefined } };
    const lines = await linesOf(nodeWith({ primary }, Date.now() - 700));
    const canary = lines.find((line) => line.startsWith('svc_replication_primary_canary_age_seconds '));
    expect(Number(canary?.split(' ')[1])).to.be.within(0.7, 60);
    expect(lines.filter((line) => line !== canary)).to.deep.equal([
      'svc_replication_states_sent 0',
      'svc_replication_connected 0',
      'svc_replication_lag_entries 5',
      'svc_replication_digest_differs 1',
      'svc_replication_stopped 1',
    ]);
  });
});
