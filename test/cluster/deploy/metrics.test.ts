// @live
// If no node exports a metric, an alert on it never fires and a panel on it stays empty.
import { expect } from 'chai';
import { named, recorded, withoutValue } from '../../deploy/metric-names.ts';
import { base64 } from '../../process/live-server.ts';
import type { LiveNode } from '../harness/live-node.ts';
import { scenarioMs, withCluster } from '../harness/scenario.ts';
import { until } from '../harness/until.ts';

async function scrape(node: LiveNode, accept: string): Promise<{ type: string | null; text: string }> {
  const [, address = ''] = await node.server.log(/"telemetry":"(http[^"]+)"/);
  const response = await fetch(`${address}/metrics`, { headers: { accept } });
  return { type: response.headers.get('content-type'), text: await response.text() };
}

describe('metrics in alert rules and dashboards', function () {
  this.timeout(scenarioMs);

  it('are extracted from the queries', () => {
    expect(named()).to.include.members([
      'svc_core_active',
      'svc_raft_storage_stats_term',
      'svc_route_transit__count',
      'transitd:nodes_up:count',
    ]);
    expect(named().filter((name) => !/^(svc_|transitd:|haproxy_|process_|nodejs_)/.test(name))).to.deep.equal([]);
  });

  it('are recorded by a rule or exported by a live cluster in both formats, except those of HAProxy', () =>
    withCluster(
      {
        size: 2,
        workers: 1,
        elections: 'never',
        config: { audit: [{ type: 'stdout', name: 'out' }] },
        env: () => ({ TRANSITD_TELEMETRY_ADDRESS: '127.0.0.1:0' }),
      },
      async (cluster) => {
        const leader = await cluster.settled();
        const [standby = leader] = cluster.others(leader);
        const answer = await cluster.askWhenLed(standby, 'POST', 'transit/encrypt/used', { plaintext: base64('text') });
        expect(answer.status).to.equal(200);
        for (const { accept, type } of [
          { accept: 'text/plain', type: 'text/plain; version=0.0.4; charset=utf-8' },
          { accept: 'application/openmetrics-text', type: 'application/openmetrics-text; version=1.0.0; charset=utf-8' },
        ]) {
          let missing: readonly string[] = [];
          // Some values exist once the nodes have exchanged heartbeats.
          await until(
            `every metric is exported as ${type}`,
            async () => {
              const pages = await Promise.all([leader, standby].map((node) => scrape(node, accept)));
              expect(pages.map((page) => page.type)).to.deep.equal([type, type]);
              const exported = pages.flatMap(({ text }) => [...text.matchAll(/^([a-zA-Z_]\w*)/gm)].map(([name]) => name));
              const declared = pages.flatMap(({ text }) => [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name));
              const known = new Set([...recorded(), ...exported, ...withoutValue.filter((name) => declared.includes(name))]);
              missing = named().filter((name) => !known.has(name) && !name.startsWith('haproxy_'));
              return missing.length === 0;
            },
            { explain: () => missing.join(' ') },
          );
        }
      },
    ));
});
