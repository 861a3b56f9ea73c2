import type { Node } from '@transitd/node';
import { takesPart } from '@transitd/storage-fsm';
import type { CertificateFigures } from './certificates.ts';
import type { ClusterFigures } from './cluster.ts';
import type { MetricSources } from './metrics.ts';
import type { ReplicationFigures } from './replication.ts';

/** Returns the sources of the gauges of a node; `node` returns undefined until the node is open. */
export const metricSourcesOf = (node: () => Node | undefined): MetricSources => ({
  unsealed: () => node()?.services !== undefined,
  active: () => node()?.active ?? false,
  raft: () => node()?.member?.replica.status(),
  featureLevel: () => node()?.member?.engine.featureLevel ?? 0,
  diskStalledMs: () => node()?.member?.engine.diskStalledMs ?? 0,
  barrierEncryptions: () =>
    node()?.services === undefined ? 0 : (node()?.member?.barrier.rotation.keyStatus().encryptions ?? 0),
  seal: () => node()?.sealHealth,
  clock: () => node()?.clock,
  cluster: () => clusterFigures(node()),
  replication: () => replicationFigures(node()),
});

/** Returns the certificate of the cluster port, and that of the cluster's authority. */
export function clusterCertificates(node: Node | undefined): CertificateFigures {
  const port = node?.clusterPort;
  return port === undefined
    ? { shown: [] }
    : { shown: [{ address: port.address, chain: port.certificate }], authority: port.authority };
}

function clusterFigures(node: Node | undefined): ClusterFigures | undefined {
  const { cluster, replica } = node?.member ?? {};
  if (node === undefined || cluster === undefined || replica === undefined) return undefined;
  const members = cluster.membershipList.members.length;
  const state = node.active ? cluster.autopilot.latestState : undefined;
  if (state === undefined) return { members };
  const { phase, waitsFor } = cluster.rotation.status;
  const { appliedIndex } = replica.status();
  const others = state.servers.filter(({ role }) => role !== 'leader');
  return {
    members,
    leader: {
      healthy: state.healthy,
      failureTolerance: state.failureTolerance,
      nodes: state.servers.map(({ member, healthy }) => ({ name: member.name, healthy })),
      followers: others.flatMap(({ member: { id, name } }) => {
        const report = cluster.standbys.report(id);
        const delta = appliedIndex - (report?.appliedIndex ?? 0);
        return report === undefined ? [] : [{ name, appliedIndexDelta: Math.max(0, delta), lastHeartbeatMs: report.agoMs }];
      }),
      rotation: { isInProgress: phase !== 'none', waitsFor },
    },
  };
}

function replicationFigures(node: Node | undefined): ReplicationFigures | undefined {
  const replication = node?.member?.replication;
  const isReplicating = takesPart(node?.eligibility.replicationStatus);
  if (node === undefined || replication === undefined || !node.active || !isReplicating) return undefined;
  const { secondaries, statesSent, primary, fence, material } = replication;
  const canaryUtcMs = node.member?.peers?.canaryUtcMs;
  const { state, silentMs, afterMs } = fence.status;
  const remainingMs = afterMs !== undefined && silentMs !== undefined ? Math.max(0, afterMs - silentMs) : undefined;
  return {
    ...{ secondaries, statesSent },
    ...(state !== 'off' && { fence: { isClosed: state === 'closed', remainingMs } }),
    ...(material.setting.last && { keyMaterial: material.counts }),
    ...(primary && {
      primary: {
        isConnected: primary.connection === 'connected',
        digestDiffers: primary.stopped === 'digest_differs',
        isStopped: primary.stopped !== undefined,
        lag: primary.lag,
        canaryAgeMs: canaryUtcMs === undefined ? undefined : Date.now() - canaryUtcMs,
      },
    }),
  };
}
