import type { Answer } from '../../process/live-server.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { LiveNode } from './live-node.ts';
import { until } from './until.ts';

/** Nothing was done, or the outcome is unknown. The removal of a node that is no member changes nothing, so it may be repeated. */
const mayBeRepeated = ({ status, text }: Answer): boolean =>
  status === 503 || status === 504 || (status === 400 && /voters, only \d+ are reachable/.test(text));

/**
 * Removes a member through this node. The active node refuses that while it hears no majority of the others, as after a stall of the
 * machine.
 * @throws if it is refused for another reason
 */
export async function remove(
  cluster: LiveCluster,
  { name }: LiveNode,
  { through, token = cluster.rootToken }: { readonly through: LiveNode; readonly token?: string },
): Promise<void> {
  let last: Answer | undefined;
  await until(
    `${name} is removed`,
    async () => {
      last = await cluster.ask(through, 'POST', 'sys/storage/raft/remove-peer', { server_id: name }, { token });
      if (last.status !== 204 && !mayBeRepeated(last)) throw new Error(`the removal of ${name}: ${last.status} ${last.text}`);
      return last.status === 204;
    },
    { explain: () => `last: ${last?.status} ${last?.text}\n${cluster.tails()}` },
  );
}

/** Makes a removed node a member again, with the same name and an empty disk. */
export async function readmit(cluster: LiveCluster, node: LiveNode, { through }: { readonly through: LiveNode }): Promise<void> {
  await node.replace();
  await cluster.join(node, through);
}
