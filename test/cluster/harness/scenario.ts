// Shared set-up: a cluster for one test, or for the tests of a suite, with logs kept if a test fails.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ClusterOptions, LiveCluster } from './live-cluster.ts';

export const scenarioMs = 600_000;

type Task = (cluster: LiveCluster) => Promise<void>;

/** Runs the task on a new, formed cluster. */
export async function withCluster(options: ClusterOptions, task: Task): Promise<void> {
  return onNew(await LiveCluster.formed(options), task);
}

/** Like `withCluster`, but the nodes do not know each other yet. */
export async function withNodes(options: ClusterOptions, task: Task): Promise<void> {
  return onNew(await LiveCluster.start(options), task);
}

/**
 * Shares one cluster among the tests of a suite. Each test must leave the cluster healthy; after a failed test, the next test gets a new
 * cluster. Call this function inside `describe`.
 */
export function sharedCluster(options: ClusterOptions = {}): (task: Task) => Promise<void> {
  let shared: LiveCluster | undefined;
  after(() => shared?.end());
  return async (task) => {
    shared ??= await LiveCluster.formed(options);
    const cluster = shared;
    try {
      await judged(cluster, async () => {
        await task(cluster);
        await cluster.settled();
      });
    } catch (error) {
      shared = undefined;
      await cluster.end();
      throw error;
    }
  };
}

async function onNew(cluster: LiveCluster, task: Task): Promise<void> {
  try {
    await judged(cluster, task);
  } finally {
    await cluster.end();
  }
}

/**
 * If the task fails, keeps the logs of all nodes in a folder that the error names. Unexpected callers of a node, and a node that ended
 * with a bug, are failures too.
 */
async function judged(cluster: LiveCluster, task: Task): Promise<void> {
  try {
    await task(cluster);
    const strangers = cluster.nodes.flatMap(({ name, proxy }) => [...proxy.strangers].map((address) => `${address} → ${name}`));
    if (strangers.length > 0)
      throw new Error(`cluster connections from addresses that belong to no node: ${strangers.join(', ')}`);
    const { broken } = cluster;
    if (broken.length > 0) throw new Error(`broken invariant on ${broken.map(({ name }) => name).join(', ')}`);
  } catch (error) {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-failed-'));
    for (const { name, log } of cluster.nodes) writeFileSync(join(folder, `${name}.log`), log);
    // The message of a time-out of fetch cannot be changed.
    if (error instanceof DOMException) throw new Error(`${error.message}\nlogs: ${folder}`, { cause: error });
    if (error instanceof Error) error.message += `\nlogs: ${folder}`;
    throw error;
  }
}
