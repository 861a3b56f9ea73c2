import { hostname } from 'node:os';
import { boolean, list, object, orNull, string, time, topLevelDataReply } from '@transitd/http';
import type { Node } from '@transitd/node';
import { version } from '@transitd/process';
import * as answers from '../operation/answers.ts';
import { guarded, type Route } from '../operation/operation.ts';

/** Transfers leadership to another node; returns once the transfer has succeeded or failed. */
const stepDown = guarded({
  name: 'step-down',
  about: 'Transfer leadership to another node',
  answers: answers.written,
  capability: 'update',
  sudo: true,
  onSecondary: true,
  endsLeadership: true,
  run: ({ node }) => node.stepDown(),
});

/** Lists the nodes as the active node knows them. */
const haStatus = guarded({
  name: 'ha-status',
  about: 'Read the nodes of the cluster and the last heartbeat of each, as the active node knows them',
  answers: answers.topLevelData(
    object({
      nodes: list(
        object({
          hostname: string,
          api_address: string,
          cluster_address: string,
          active_node: boolean,
          last_echo: orNull(time),
          version: string,
          upgrade_version: string,
        }),
      ),
    }),
  ),
  capability: 'read',
  where: 'leader',
  run: ({ node }) => topLevelDataReply({ nodes: [own(node), ...others(node, Date.now())] }),
});

const own = ({ config, apiAddress }: Node) => ({
  hostname: hostname(),
  api_address: apiAddress,
  cluster_address: config.cluster_addr ?? '',
  active_node: true,
  last_echo: null,
  version,
  upgrade_version: version,
});

/**
 * Returns the other nodes. Includes nodes that have not sent a heartbeat since this node became leader: this node does not know the
 * heartbeats that earlier leaders received.
 */
function others({ member }: Node, now: number) {
  const { peers, replica } = member ?? {};
  const members = peers?.membershipList.members.filter(({ id }) => id !== replica?.status().nodeId) ?? [];
  return members.map(({ id, apiAddress, clusterAddress }) => {
    const report = peers?.standbys.report(id);
    return {
      hostname: report?.hostname ?? '',
      api_address: report?.apiAddress ?? apiAddress,
      cluster_address: report?.clusterAddress ?? clusterAddress,
      active_node: false,
      last_echo: report === undefined ? null : new Date(now - report.agoMs).toISOString(),
      version: report?.version ?? '',
      upgrade_version: report?.version ?? '',
    };
  });
}

export const haRoutes: readonly Route[] = [
  { path: 'sys/step-down', operations: { POST: stepDown } },
  { path: 'sys/ha-status', operations: { GET: haStatus } },
];
