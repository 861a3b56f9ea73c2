// Checks after a storm of faults that every node has every acknowledged write.
import { safety } from '../../safety.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { LiveNode } from './live-node.ts';
import { until } from './until.ts';
import type { Workload } from './workload.ts';

/** Resolves when this node has applied the active node's current commit index. */
export async function caughtUp(cluster: LiveCluster, node: LiveNode): Promise<void> {
  const committed = await (await cluster.leader()).ask('GET', 'sys/leader');
  const target = Number(committed.at('raft_committed_index'));
  await until(
    `${node.name} has applied ${target}`,
    async () => {
      const answer = await node.ask('GET', 'sys/leader').catch(() => undefined);
      return answer?.status === 200 && Number(answer.at('raft_applied_index')) >= target;
    },
    { explain: () => node.tail() },
  );
}

/** @throws if an acknowledged write is missing, or an answer has no explanation */
export async function expectNothingLost(cluster: LiveCluster, workload: Workload): Promise<void> {
  const found = await losses(cluster, workload);
  if (found.length > 0) throw new Error(`${safety}: ${found.length} losses:\n${found.slice(0, 20).join('\n')}`);
}

/** Returns missing acknowledged writes and unexplained answers; empty if all is well. */
export async function losses(cluster: LiveCluster, workload: Workload): Promise<string[]> {
  const found = [...workload.stale];
  const { history } = workload;
  const leader = await cluster.settled();
  // The final reads become part of the histories, so that a lost write is a contradiction.
  for (const key of history.keys) await readInto(cluster, leader, workload, key);
  for (const [key, verdict] of history.verdicts()) found.push(`${key} is ${verdict}:\n${history.text(key)}`);
  for (const node of cluster.nodes) {
    await caughtUp(cluster, node);
    const say = (text: string): unknown => found.push(`${node.name}: ${text}`);
    await each([...workload.created], async (key) => {
      const { status, text } = await cluster.askWhenLed(node, 'GET', `transit/keys/${key}`);
      if (status !== 200) say(`${key} was acknowledged: ${status} ${text}`);
    });
    await each(history.keys, (key) => compare(cluster, { leader, node, key, say }));
    await each(workload.encrypted, async ({ key, ciphertext, plaintext }) => {
      const answer = await cluster.askWhenLed(node, 'POST', `transit/decrypt/${key}`, { ciphertext });
      if (answer.status !== 200 || answer.at('data.plaintext') !== plaintext) say(`${ciphertext} of ${key}: ${answer.text}`);
    });
  }
  return found;
}

/** Runs all tasks, a few at a time. */
async function each<T>(list: readonly T[], task: (one: T) => Promise<void>): Promise<void> {
  const rest = list.values();
  const workers = Array.from({ length: 16 }, async () => {
    for (const one of rest) await task(one);
  });
  await Promise.all(workers);
}

const isSetting = (key: string): boolean => key.startsWith('setting');

async function readInto(cluster: LiveCluster, leader: LiveNode, { history }: Workload, key: string): Promise<void> {
  const kind = isSetting(key) ? 'setting' : 'counter';
  const call = history.begin(key, kind, { kind: 'read' }, `${leader.name}, at the end`);
  const { status, text } = await cluster.askWhenLed(leader, 'GET', `transit/keys/${key}`);
  if (status !== 200 && status !== 404) throw new Error(`${key} cannot be read at the end: ${status} ${text}`);
  const value = status === 404 ? 0 : JSON.parse(text).data[kind === 'setting' ? 'auto_rotate_period' : 'latest_version'];
  history.returned(call, Number(value));
}

interface Comparison {
  readonly leader: LiveNode;
  readonly node: LiveNode;
  readonly key: string;
  readonly say: (text: string) => void;
}

/** Returns the key as it is on this node and on the active node. */
async function compare(cluster: LiveCluster, { leader, node, key, say }: Comparison): Promise<void> {
  const [here, there] = await Promise.all([node, leader].map((asked) => cluster.askWhenLed(asked, 'GET', `transit/keys/${key}`)));
  const view = (text = ''): string => JSON.stringify(JSON.parse(text).data ?? null);
  if (here?.status !== there?.status || view(here?.text) !== view(there?.text))
    say(`${key} is ${here?.text}, on the active node ${there?.text}`);
}
