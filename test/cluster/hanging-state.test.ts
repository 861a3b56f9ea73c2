// @live
// Only the state store of the active node hangs; its log works. It transfers leadership, or refuses writes if no other voter can lead.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { attempt } from './harness/outcome.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { attachStrace } from './harness/strace.ts';
import { until } from './harness/until.ts';

/** Longer than any wait of a test. */
const hangS = 600;
/** On a busy machine, some dozens of large policies take minutes. */
const fillMs = 300_000;
/** A policy of almost the largest size: some dozens of them fill the limit of unflushed bytes. */
const policy = `${`# ${'x'.repeat(98)}\n`.repeat(9_000)}path "a" { capabilities = ["read"] }`;
/** A short election timeout, so that a hanging state store is detected soon. */
const config = { raft: { election_timeout: '1s' } };

/** Files to which LevelDB writes first: every flush of the state syncs one of them. */
const stateLogs = ({ dataDir }: LiveNode): string[] =>
  readdirSync(dataDir, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?:^|\/)state\/\d+\.log$/.test(name))
    .map((name) => join(dataDir, name));

/** From now on every sync of this node's state hangs; syncs of its Raft log continue. */
async function withHangingState(node: LiveNode, task: () => Promise<void>): Promise<void> {
  const files = stateLogs(node).flatMap((file) => ['-P', file]);
  expect(files).not.to.deep.equal([]);
  const inject = `inject=fdatasync,fsync:delay_enter=${hangS}s`;
  const detach = await attachStrace(node, ['-o', '/dev/null', ...files, '-e', 'trace=fdatasync,fsync', '-e', inject]);
  try {
    await task();
  } finally {
    await detach();
  }
}

/** Writes large policies until the condition holds. Returns the statuses of the answers, 0 for none. */
async function fillUntil(
  cluster: LiveCluster,
  node: LiveNode,
  holds: (statuses: readonly number[]) => Promise<boolean> | boolean,
): Promise<void> {
  const statuses: number[] = [];
  let written = 0;
  await until(
    'enough was written',
    async () => {
      const path = `sys/policies/acl/p${written++ % 100}`;
      const answer = await cluster.ask(node, 'POST', path, { policy }, { withinMs: 3_000 }).catch(() => undefined);
      statuses.push(answer?.status ?? 0);
      return holds(statuses);
    },
    { withinMs: fillMs, explain: () => `${statuses.join(' ')}\n${node.tail()}` },
  );
}

const traceable = spawnSync('strace', ['-V']).status === 0 || process.env['CI'] !== undefined;
const live = traceable ? it : it.skip;

describe('an active node whose state store hangs', function () {
  this.timeout(scenarioMs);

  live('transfers leadership to a fit voter, which accepts writes', () =>
    withCluster({ config }, async (cluster) => {
      const leader = await cluster.settled();
      await withHangingState(leader, async () => {
        await fillUntil(cluster, leader, async () => (await leader.health())?.code !== 200);
        const next = await cluster.leader(cluster.others(leader));
        // With an election timeout this short, leadership may change once more. Creating a key twice changes nothing.
        await until('it accepts writes', async () => {
          const { kind } = await attempt(cluster.ask(next, 'POST', 'transit/keys/after', {}));
          return kind === 'done';
        });
      });
    }),
  );

  live('stays leader without a successor, refuses writes with 503, may refuse reads, and continues when the store does', () =>
    withCluster({ config, size: 1 }, async (cluster) => {
      const leader = await cluster.settled();
      await cluster.ask(leader, 'POST', 'transit/keys/before', {});
      await withHangingState(leader, async () => {
        await fillUntil(cluster, leader, (statuses) => statuses.slice(-3).join(' ') === '503 503 503');
        // If the last write was applied before the store counted as hanging, the newest state is available and reads continue.
        const read = await cluster.ask(leader, 'GET', 'transit/keys/before');
        expect(read.status, read.text).to.be.oneOf([200, 503]);
        if (read.status === 503) expect(read.text).to.contain('the state store of this node is not finishing its writes');
        const write = await cluster.ask(leader, 'POST', 'transit/keys/refused', {});
        expect(write.status, write.text).to.equal(503);
        expect(write.text).to.contain('the state store of this node is not finishing its writes');
      });
      expect((await cluster.askWhenLed(leader, 'GET', 'transit/keys/before')).status).to.equal(200);
      expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/after', {})).status).to.equal(200);
    }),
  );
});
