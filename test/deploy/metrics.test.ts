// If no node exports a metric, an alert on it never fires and a panel on it stays empty.
import { expect } from 'chai';
import { base64, processMs, Workbench } from '../process/live-server.ts';
import { named, recorded } from './metric-names.ts';

describe('metrics in alert rules and dashboard', () => {
  const bench = new Workbench();
  after(() => bench.clean());

  it('are extracted from the queries', () => {
    expect(named()).to.include.members([
      'svc_core_active',
      'svc_raft_storage_stats_term',
      'svc_route_transit__count',
      'transitd:nodes_up:count',
    ]);
    expect(named().filter((name) => !/^(svc_|transitd:|haproxy_|process_|nodejs_)/.test(name))).to.deep.equal([]);
  });

  it('are recorded by a rule or exported by a live node, except those of HAProxy', async function () {
    this.timeout(processMs);
    const server = bench.launch({ dataDir: bench.folder(), env: { TRANSITD_TELEMETRY_ADDRESS: '127.0.0.1:0' } });
    await server.ready();
    const [, address = ''] = await server.log(/"telemetry":"(http[^"]+)"/);
    const answer = await server.call('POST', 'transit/encrypt/used', { plaintext: base64('text') });
    expect(answer.status).to.equal(200);
    const metrics = await (await fetch(`${address}/metrics`)).text();
    const known = new Set([...recorded(), ...[...metrics.matchAll(/^([a-zA-Z_]\w*)/gm)].map(([name]) => name)]);
    // This node is not in a cluster, so metrics of the cluster's authority are declared but have no value yet.
    for (const [, name = ''] of metrics.matchAll(/^# TYPE (svc_raft_authority_\w+)/gm)) known.add(name);
    expect(named().filter((name) => !known.has(name) && !name.startsWith('haproxy_'))).to.deep.equal([]);
  });
});
