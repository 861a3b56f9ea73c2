// What the scenarios share: a cluster for one test, told about when the test fails.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ClusterOptions, LiveCluster } from './live-cluster.ts';

export const scenarioMs = 240_000;

/**
 * Runs the task on a new cluster that is formed. When it fails, the logs of all nodes are kept in a folder that the error names.
 * Callers that a node was not to have, or a node that ended by itself with a fault, fail it too.
 */
export async function withCluster(options: ClusterOptions, task: (cluster: LiveCluster) => Promise<void>): Promise<void> {
  return judged(await LiveCluster.formed(options), task);
}

/** The same with nodes that know nothing of each other yet. */
export async function withNodes(options: ClusterOptions, task: (cluster: LiveCluster) => Promise<void>): Promise<void> {
  return judged(await LiveCluster.start(options), task);
}

async function judged(cluster: LiveCluster, task: (cluster: LiveCluster) => Promise<void>): Promise<void> {
  try {
    await task(cluster);
    const strangers = cluster.nodes.flatMap(({ name, proxy }) => [...proxy.strangers].map((address) => `${address} → ${name}`));
    if (strangers.length > 0)
      throw new Error(`cluster connections from addresses that belong to no node: ${strangers.join(', ')}`);
    const broken = cluster.nodes.filter(({ log }) => log.includes('broken invariant'));
    if (broken.length > 0) throw new Error(`broken invariant on ${broken.map(({ name }) => name).join(', ')}`);
  } catch (error) {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-failed-'));
    for (const { name, log } of cluster.nodes) writeFileSync(join(folder, `${name}.log`), log);
    if (error instanceof Error) error.message += `\nlogs: ${folder}`;
    throw error;
  } finally {
    await cluster.end();
  }
}
