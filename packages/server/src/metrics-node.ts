import type { Node } from '@transitd/node';
import type { MetricSources } from './metrics.ts';
import type { ClusterFigures } from './metrics-cluster.ts';

/** What the gauges show of a node; before it is open, that it is not there. */
export const figuresOf = (node: () => Node | undefined): MetricSources => ({
  unsealed: () => node()?.services !== undefined,
  active: () => node()?.active ?? false,
  raft: () => node()?.replicaStatus,
  barrierEncryptions: () => (node()?.services === undefined ? 0 : (node()?.store?.barrier.rotation.keyStatus().encryptions ?? 0)),
  clock: () => node()?.clock,
  cluster: () => clusterFigures(node()),
});

function clusterFigures(node: Node | undefined): ClusterFigures | undefined {
  const { cluster, replicaStatus: raft } = node ?? {};
  if (node === undefined || cluster === undefined || raft === undefined) return undefined;
  const members = cluster.membershipList.members.length;
  const seen = node.active ? cluster.autopilot?.seen : undefined;
  if (seen === undefined) return { members };
  const others = seen.servers.filter(({ part }) => part !== 'leader');
  return {
    members,
    lead: {
      healthy: seen.healthy,
      failureTolerance: seen.failureTolerance,
      nodes: seen.servers.map(({ member, healthy }) => ({ name: member.name, healthy })),
      followers: others.flatMap(({ member: { id, name } }) => {
        const news = cluster.standbys.news(id);
        const delta = raft.appliedIndex - (news?.appliedIndex ?? 0);
        return news === undefined ? [] : [{ name, appliedIndexDelta: Math.max(0, delta), lastHeartbeatMs: news.agoMs }];
      }),
    },
  };
}
