// @live
// A cluster of three processes is upgraded under load, and raises its feature level by itself once all members support the next one.
import { expect } from 'chai';
import { safety } from '../../safety.ts';
import type { LiveNode } from '../harness/live-node.ts';
import { scenarioMs, withCluster } from '../harness/scenario.ts';
import { losses } from '../harness/survivors.ts';
import { until } from '../harness/until.ts';
import { Workload } from '../harness/workload.ts';
import { nextLevel, Releases } from './harness/next-release.ts';
import { levelsOf, roll, unexplained } from './harness/roll.ts';

/** Returns the times of the lines with this message, in the order of the log. */
const timesOf = ({ log }: LiveNode, message: string): readonly string[] =>
  log
    .split('\n')
    .filter((line) => line.includes(`"msg":"${message}`))
    .map((line) => JSON.parse(line).time);

describe('an upgrade with feature_level_raise_after', function () {
  this.timeout(scenarioMs);
  const releases = new Releases();
  after(() => releases.remove());

  it('raises the level by itself, but not before the last member is upgraded', () =>
    withCluster({ elections: 'shipped', config: { feature_level_raise_after: '1s' } }, async (cluster) => {
      const next = await releases.next();
      const [one, two, three] = [cluster.node(1), cluster.node(2), cluster.node(3)];
      const present = (await levelsOf(cluster, one)).level;
      const workload = await Workload.start(cluster, { clients: 3, settings: 4, counters: 2 });

      await roll(cluster, workload, next, [one, two]);
      await until('only n3 holds up the next level', async () => (await levelsOf(cluster, one)).waits_for.join() === 'n3');
      expect((await levelsOf(cluster, one)).level).to.equal(present);

      await roll(cluster, workload, next, [three]);
      await until('the level is raised', async () => (await levelsOf(cluster, one)).level === nextLevel);
      for (const node of cluster.nodes) {
        const answer = await cluster.askWhenLed(node, 'POST', 'sys/next-release', {});
        expect([answer.status, answer.at('data.level')], node.name).to.deep.equal([200, nextLevel]);
      }
      const raised = cluster.nodes.flatMap((node) => timesOf(node, 'raised the feature level'));
      const [ended = ''] = timesOf(three, 'stopped');
      expect(raised).to.have.length(1);
      expect(Date.parse(raised[0] ?? '')).to.be.above(Date.parse(ended), 'n3 was still of the earlier release');

      await Promise.all(cluster.nodes.map((node) => workload.nextWrite([node])));
      await workload.stop();
      expect(unexplained(workload)).to.deep.equal([]);
      expect(await losses(cluster, workload), safety).to.deep.equal([]);

      // From now on the earlier release does not start.
      await two.stop();
      two.install();
      expect((await two.launch().exited).code).to.equal(1);
      expect(two.log).to.match(new RegExp(`is at feature level ${nextLevel}, and this program supports levels`));
    }));
});
