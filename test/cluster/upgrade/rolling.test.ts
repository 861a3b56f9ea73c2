// A cluster of three processes is upgraded to a later release under load, goes back, is upgraded again, and raises its feature level.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from '../../process/live-server.ts';
import { expectCode, run } from '../../process/transitd-command.ts';
import { safety } from '../../safety.ts';
import type { LiveCluster } from '../harness/live-cluster.ts';
import { scenarioMs, withCluster } from '../harness/scenario.ts';
import { losses } from '../harness/survivors.ts';
import { Workload } from '../harness/workload.ts';
import { nextLevel, Releases } from './harness/next-release.ts';
import { allSupport, levelsOf, roll, unexplained } from './harness/roll.ts';

/** The commands of the page, one a line. */
const commands = /```sh\n(.*?)```/s.exec(readFileSync(join(root, 'docs/upgrades.md'), 'utf8'))?.[1] ?? '';

describe('an upgrade', function () {
  this.timeout(scenarioMs);
  const releases = new Releases();
  after(() => releases.remove());

  it('rolls forward, back and forward again under load, and raises the level', () =>
    withCluster({ workers: 'auto', elections: 'shipped' }, async (cluster) => {
      const [next, later] = [await releases.next(), await releases.later()];
      const [one, two, three] = [cluster.node(1), cluster.node(2), cluster.node(3)];
      const present = (await levelsOf(cluster, one)).level;
      const workload = await Workload.start(cluster, { clients: 3, settings: 4, counters: 2 });

      await roll(cluster, workload, next);
      await allSupport(cluster, nextLevel);
      expect((await levelsOf(cluster, one)).level, 'nobody has raised it').to.equal(present);
      const tooEarly = await cluster.askWhenLed(two, 'POST', 'sys/next-release', {});
      expect([tooEarly.status, tooEarly.text]).to.satisfy(
        ([status, text]: [number, string]) => status === 400 && /needs feature level/.test(text),
      );

      // Downgrades one node, then upgrades it again. scripts/upgrade.ts downgrades all nodes.
      await roll(cluster, workload, undefined, [one]);
      const held = await cluster.askWhenLed(three, 'POST', 'sys/feature-level/raise', { level: nextLevel });
      expect(held.status).to.equal(400);
      expect(held.text)
        .to.contain('n1 (')
        .and.not.to.match(/n[23] \(/);
      await roll(cluster, workload, next, [one]);
      await allSupport(cluster, nextLevel);

      await runCommandsOfThePage(cluster);
      expect((await levelsOf(cluster, three)).level).to.equal(nextLevel);
      await Promise.all(cluster.nodes.map((node) => workload.nextWrite([node])));
      for (const node of cluster.nodes) {
        const answer = await cluster.askWhenLed(node, 'POST', 'sys/next-release', {});
        expect([answer.status, answer.at('data.level')], node.name).to.deep.equal([200, nextLevel]);
      }

      // The earlier release refuses to start, with one sentence. A release that knows only the later levels can be installed now.
      await two.stop();
      two.install();
      expect((await two.launch().exited).code).to.equal(1);
      expect(two.log).to.match(
        new RegExp(`is at feature level ${nextLevel}, and this program supports levels \\d+ to \\d+: run a release`),
      );
      two.install(later);
      await two.start();
      await cluster.settled();
      await workload.nextWrite([two]);

      await workload.stop();
      expect(unexplained(workload)).to.deep.equal([]);
      expect(await losses(cluster, workload), safety).to.deep.equal([]);

      two.install();
      await two.replace();
      expect((await cluster.joinAnswer(two, one)).status, 'a join of the earlier release').to.equal(503);
      expect(two.log).to.match(new RegExp(`the cluster is at feature level ${nextLevel}, and the joining node supports level`));
    }));
});

async function runCommandsOfThePage(cluster: LiveCluster): Promise<void> {
  const lines = commands
    .trim()
    .split('\n')
    .map((line) => line.trim());
  expect(lines).to.include('transitd operator feature-level raise');
  const env = { TRANSITD_ADDR: cluster.node(1).apiAddress, TRANSITD_TOKEN: cluster.rootToken };
  for (const line of lines) {
    const { stdout } = expectCode(await run(line.split(' ').slice(1), { env }), 0, line);
    expect(stdout, line).to.contain(String(nextLevel));
  }
}
