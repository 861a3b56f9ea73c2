// The disk of the state hangs on the active node alone, while its log works: it hands over.
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { LiveCluster } from './live-cluster.ts';
import type { LiveNode } from './live-node.ts';
import { scenarioMs, withCluster } from './scenario.ts';
import { until } from './until.ts';

/** Longer than a test waits for anything. */
const hangS = 300;
/** A policy of almost the largest size: some dozens of them are as much as may wait for a flush. */
const policy = `${`# ${'x'.repeat(98)}\n`.repeat(9_000)}path "a" { capabilities = ["read"] }`;
/** Short, so that a hang soon counts as one. */
const config = { raft: { election_timeout: '1s' } };

/** Files that LevelDB writes first what it is given: every flush of the state syncs one of them. */
const stateLogs = ({ dataDir }: LiveNode): string[] =>
  readdirSync(dataDir, { recursive: true, encoding: 'utf8' })
    .filter((name) => /(?:^|\/)state\/\d+\.log$/.test(name))
    .map((name) => join(dataDir, name));

/** Lets every sync of the state of this node hang from now on; what it syncs of its Raft log goes on. */
async function withHangingState(node: LiveNode, task: () => Promise<void>): Promise<void> {
  const files = stateLogs(node).flatMap((file) => ['-P', file]);
  expect(files).not.to.deep.equal([]);
  const inject = `inject=fdatasync,fsync:delay_enter=${hangS}s`;
  const pid = String(node.server.child.pid);
  const args = ['-f', '-o', '/dev/null', '-p', pid, ...files, '-e', 'trace=fdatasync,fsync', '-e', inject];
  const strace = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const gone = new Promise((resolve) => strace.once('exit', resolve));
  let said = '';
  strace.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  try {
    await until('strace is attached', () => said.includes('attached'), { explain: () => said });
    await task();
  } finally {
    strace.kill('SIGINT');
    await gone;
  }
}

/** Writes large policies until the node is no longer the active one; a write that hangs is given up. */
async function fillWhileActive(cluster: LiveCluster, node: LiveNode): Promise<void> {
  const statuses: number[] = [];
  await until(
    'another node may lead',
    async () => {
      const path = `sys/policies/acl/p${statuses.length % 100}`;
      const answer = await cluster.ask(node, 'POST', path, { policy }, { withinMs: 3_000 }).catch(() => undefined);
      statuses.push(answer?.status ?? 0);
      return (await node.health())?.code !== 200;
    },
    { explain: () => `${statuses.join(' ')}\n${node.tail()}` },
  );
}

const traceable = spawnSync('strace', ['-V']).status === 0 || process.env['CI'] !== undefined;
describe('an active node whose state store hangs', function () {
  this.timeout(scenarioMs);

  (traceable ? it : it.skip)('hands over to a fit voter, and writes go on there', () =>
    withCluster({ config }, async (cluster) => {
      const leader = await cluster.settled();
      await withHangingState(leader, async () => {
        await fillWhileActive(cluster, leader);
        const next = await cluster.leader(cluster.others(leader));
        expect((await cluster.askWhenLed(next, 'POST', 'transit/keys/after', {})).status).to.equal(200);
      });
    }),
  );
});
