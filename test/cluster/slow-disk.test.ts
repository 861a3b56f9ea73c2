// Only the disk of the active node is slow. Writes are acknowledged when a quorum of other nodes has them on disk.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { attachStrace } from './harness/strace.ts';

/** A leader whose write hangs for that long steps down. */
const electionTimeoutS = 10;
/** Shorter than that, and so long that four such syncs outlast a stall of the machine. */
const syncMs = 8_000;

/** Delays every sync of this node's log from now on. `ended` returns how many of them have ended. */
async function withSlowSyncs(node: LiveNode, task: (ended: () => number) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-strace-'));
  const trace = join(folder, 'trace');
  const inject = `inject=fdatasync:delay_enter=${syncMs * 1_000}`;
  const detach = await attachStrace(node, ['-o', trace, '-e', 'trace=fdatasync', '-e', inject]);
  try {
    const lines = (): string[] => readFileSync(trace, 'utf8').split('\n');
    await task(() => lines().filter((line) => line.includes('= 0')).length);
  } finally {
    await detach();
    rmSync(folder, { recursive: true });
  }
}

const traceable = spawnSync('strace', ['-V']).status === 0 || process.env['CI'] !== undefined;

describe('an active node with a slow disk', function () {
  this.timeout(scenarioMs);

  (traceable ? it : it.skip)('acknowledges writes before its own syncs of them have ended, and loses none', () =>
    withCluster({ config: { raft: { election_timeout: `${electionTimeoutS}s` } } }, async (cluster) => {
      const leader = await cluster.settled();
      const names = ['a', 'b', 'c', 'd'];
      await withSlowSyncs(leader, async (ended) => {
        for (const name of names) {
          const answer = await cluster.ask(leader, 'POST', `transit/keys/${name}`, {});
          expect(answer.status, answer.text).to.equal(200);
        }
        expect(ended(), 'syncs of four writes, one after the other, would have ended by then').to.be.below(names.length);
      });
      await leader.kill();
      await leader.start();
      await cluster.settled();
      for (const node of cluster.nodes) {
        for (const name of names) expect((await cluster.askWhenLed(node, 'GET', `transit/keys/${name}`)).status).to.equal(200);
      }
    }),
  );
});
