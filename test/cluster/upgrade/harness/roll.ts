// Installs a release on the nodes of a cluster, one node at a time, under load.
import type { LiveCluster } from '../../harness/live-cluster.ts';
import type { LiveNode } from '../../harness/live-node.ts';
import { until } from '../../harness/until.ts';
import type { Workload } from '../../harness/workload.ts';

/**
 * Troubles that a client may have while a node is restarted: its node is down, no node is active for a moment, or the connection ended
 * before the answer. Every other trouble would be a fault of the upgrade.
 */
const ofRestarts = [
  /^refused: 0 ECONNREFUSED$/,
  /^refused: 503 /,
  /^unknown: (?:ECONNRESET|UND_ERR_SOCKET|EPIPE)/,
  /^unknown: 504 /,
];

/** Refusals that the workload itself causes, because it also deletes keys that it changes. */
const ofTheWorkload = [/^refused: 40[04] .*(?:could be found|not found|deletion is not allowed)/];

/** Returns the troubles of clients that a plain restart does not explain. */
export const unexplained = ({ troublesText }: Workload): readonly string[] =>
  troublesText
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^\d+ × /, ''))
    .filter((trouble) => ![...ofRestarts, ...ofTheWorkload].some((known) => known.test(trouble)));

/** Installs a release on these nodes, standbys first. Before the next node, all must serve and a write must succeed through each. */
export async function roll(
  cluster: LiveCluster,
  workload: Workload,
  program: string | undefined,
  nodes: readonly LiveNode[] = cluster.nodes,
): Promise<void> {
  const leader = await cluster.settled();
  const order = [...nodes.filter((node) => node !== leader), ...nodes.filter((node) => node === leader)];
  for (const node of order) {
    const { code } = await node.stop();
    if (code !== 0) throw new Error(`${node.name} ended with ${code}\n${node.tail()}`);
    node.install(program);
    await node.start();
    await cluster.settled();
    await Promise.all(cluster.nodes.map((one) => workload.nextWrite([one])));
  }
}

export interface Levels {
  readonly level: number;
  readonly highest: number;
  readonly members: readonly { readonly node_id: string; readonly newest: number }[];
  readonly waits_for: readonly string[];
}

/** Returns the feature level as the active node reports it. */
export async function levelsOf(cluster: LiveCluster, through: LiveNode): Promise<Levels> {
  const { status, text } = await cluster.askWhenLed(through, 'GET', 'sys/feature-level');
  if (status !== 200) throw new Error(`sys/feature-level: ${status} ${text}`);
  return JSON.parse(text).data;
}

/** Resolves when the active node knows that every member supports this level as its highest. */
export async function allSupport(cluster: LiveCluster, level: number): Promise<void> {
  let last: Levels | undefined;
  await until(
    `every member supports level ${level}`,
    async () => {
      last = await levelsOf(cluster, cluster.node(1));
      return last.members.length === cluster.nodes.length && last.members.every(({ newest }) => newest === level);
    },
    { explain: () => JSON.stringify(last) },
  );
}
