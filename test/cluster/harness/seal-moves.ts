// Migrations of the seal of a live cluster.
import { expect } from 'chai';
import { expectCode, run } from '../../process/transitd-command.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { LiveNode } from './live-node.ts';
import type { Seal } from './seal-chain.ts';
import { blockOf } from './seals-page.ts';
import { until } from './until.ts';

export const statusOf = (node: LiveNode) => node.ask('GET', 'sys/seal-status');

/** Starts a node; operators give their shares if its records need them. */
async function startAndUnseal(cluster: LiveCluster, node: LiveNode): Promise<void> {
  await node.start();
  await until(
    `${node.name} is unsealed`,
    async () => {
      const status = await statusOf(node);
      if (status.at('type') === 'shamir' && status.at('sealed') === true) await cluster.unseal(node);
      return status.at('sealed') === false;
    },
    { explain: () => node.tail() },
  );
}

/** Configures and restarts one node after the other, then gives the shares to the active node and kills it at the last one. */
export async function migrate(cluster: LiveCluster, from: Seal, to: Seal): Promise<void> {
  const last = await cluster.settled();
  for (const node of [...cluster.others(last), last]) {
    await node.stop();
    node.configure({ seal: to, migrate_seal_from: from });
    await startAndUnseal(cluster, node);
    await cluster.settled();
  }
  const give = (node: LiveNode, key: string) => node.ask('PUT', 'sys/unseal', { body: { key, migrate: true } });
  const active = await cluster.leader();
  const [first = '', ...others] = cluster.shares;
  const [, ...command] = blockOf('sh', 'Migration')
    .trim()
    .replace(/https:\S+/, active.apiAddress)
    .split(' ');
  const ran = expectCode(await run([...command, '-', '--format', 'json'], { input: first }), 0);
  expect(ran.json()).to.include({ migration: true, progress: 1 });
  const killed = Promise.allSettled(others.map((key) => give(active, key)));
  await active.kill();
  await killed;
  await cluster.leader(cluster.others(active));
  await startAndUnseal(cluster, active);
  const next = await cluster.settled();
  if ((await statusOf(next)).at('migration') === true) for (const key of cluster.shares) await give(next, key);
  for (const node of cluster.nodes)
    await until(`${node.name} has the seal of type ${to.type}`, async () => {
      const status = await statusOf(node);
      return status.at('type') === to.type && status.at('migration') === false;
    });
}
