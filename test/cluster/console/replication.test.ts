// @live
// The disaster-recovery replication in a real browser: on the console of the primary, and on that of a secondary, where nobody can sign in.
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { ConsoleBrowser, expectAccessible, signIn } from '../../console/browser.ts';
import { LiveCluster } from '../harness/live-cluster.ts';
import type { LiveNode } from '../harness/live-node.ts';
import { scenarioMs } from '../harness/scenario.ts';
import { until } from '../harness/until.ts';

const dr = 'sys/replication/dr';

describe('the console of two clusters', function () {
  this.timeout(scenarioMs);
  let east: LiveCluster;
  let west: LiveCluster;
  let browser: ConsoleBrowser;

  before(async () => {
    const site = (): Promise<LiveCluster> =>
      LiveCluster.formed({ size: 2, seal: 'shamir', links: 'direct', elections: 'never', config: { ui: true } });
    [east, west, browser] = await Promise.all([site(), site(), ConsoleBrowser.launch()]);
    const primary = await east.leader();
    const made = await east.ask(primary, 'POST', `${dr}/primary/enable`, {});
    expect(made.status, made.text).to.equal(204);
    const token = await until('the members are listed', async () => {
      const answer = await east.ask(primary, 'POST', `${dr}/primary/secondary-token`, { id: 'west' });
      return answer.status === 200 && answer.string('data.token');
    });
    const enabled = await west.ask(await west.leader(), 'POST', `${dr}/secondary/enable`, { token });
    expect(enabled.status, enabled.text).to.equal(204);
    await reach(west, 503); // the shares of the primary unseal it now
    for (const node of west.nodes) await west.unseal(node, east.shares);
    await reach(west, 472);
  });
  afterEach(() => browser.closePages());
  after(async () => {
    await browser?.close();
    await east?.end();
    await west?.end();
  });

  /** Waits until every node answers with this code, active or standby. */
  const reach = (cluster: LiveCluster, code: number): Promise<boolean> =>
    until(
      `all nodes answer ${code}`,
      async () => {
        const seen = await Promise.all(cluster.nodes.map((node) => node.health('?standbyok=true&perfstandbyok=true')));
        return seen.every((health) => health?.code === code);
      },
      { explain: () => cluster.tails() },
    );
  /** Returns the node that leads, also in a secondary, which has no active node. */
  const leading = (cluster: LiveCluster): Promise<LiveNode> =>
    until('a node leads', async () => {
      for (const node of cluster.nodes) if ((await node.ask('GET', 'sys/leader')).at('is_self') === true) return node;
      return false;
    });
  const section = (page: Page) => page.getByRole('region', { name: 'Disaster recovery' });
  const positionOn = async (page: Page): Promise<number> =>
    Number(/at position ([\d,]+)/.exec((await section(page).textContent()) ?? '')?.[1]?.replaceAll(',', ''));

  it('shows the primary with its secondary, and the secondary to everybody, without a reload', async () => {
    const [leader, follower] = [await leading(east), await leading(west)];
    const [standby = leader] = east.others(leader);
    const primary = await browser.open(leader.apiAddress);
    const secondary = await browser.open(follower.apiAddress);
    await section(secondary).getByText('secondary', { exact: true }).waitFor();
    await section(secondary).getByText('connected', { exact: true }).waitFor();
    await expectAccessible(secondary, 'the page that signs in, of a secondary');
    await signIn(primary, east.rootToken);
    await section(primary).getByText('primary', { exact: true }).waitFor();
    const row = section(primary).getByRole('row', { name: /^west\b/ });
    await row.getByText('connected', { exact: true }).waitFor();
    await expectAccessible(primary, 'the cluster of a primary');

    const before = await positionOn(secondary);
    await east.ask(leader, 'POST', 'transit/keys/after', {});
    for (const page of [primary, secondary])
      await until('the page shows the new position', async () => (await positionOn(page)) > before);

    const other = await browser.open(standby.apiAddress);
    await section(other).getByText('Only the active node knows the connections').waitFor();

    await Promise.all(east.nodes.map((node) => node.kill()));
    await section(secondary).getByText('connecting', { exact: true }).waitFor();
    await primary.getByText('The figures are the last ones that this node sent.').waitFor();
  });
});
