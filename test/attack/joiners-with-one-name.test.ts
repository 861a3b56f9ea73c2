// @live
// Several nodes join under the same name at the same time.
import { expect } from 'chai';
import { LiveCluster } from '../cluster/harness/live-cluster.ts';
import { processMs } from '../process/live-server.ts';

describe('three nodes that join at once under the same name', function () {
  this.timeout(processMs);
  let cluster: LiveCluster | undefined;
  after(() => cluster?.end());

  it('are not all admitted: one becomes a member, the others are refused', async () => {
    cluster = await LiveCluster.start({ size: 4, env: (name) => (name === 'n1' ? {} : { TRANSITD_NODE_ID: 'twin' }) });
    const first = cluster.node(1);
    const twins = cluster.others(first);
    await cluster.initialize(first);
    const joining = twins.map((node) => cluster?.joinAnswer(node, first));
    const answers = (await Promise.all(joining)).map((answer) => ({ status: answer?.status, text: answer?.text ?? '' }));
    const admitted = answers.filter(({ status }) => status === 200);
    expect(admitted, JSON.stringify(answers)).to.have.length(1);
    for (const [index, { status, text }] of answers.entries()) {
      if (status === 200) continue;
      // A join request needs no token, so the answer does not say why it failed; the log does.
      expect(status, text).to.equal(503);
      expect(twins[index]?.log).to.contain('the name twin belongs to a member');
    }
    const joined = twins[answers.findIndex(({ status }) => status === 200)];
    await joined?.reaches(473);
    const configuration = await cluster.ask(first, 'GET', 'sys/storage/raft/configuration');
    const servers = configuration.at('data.config.servers');
    expect(Array.isArray(servers) && servers.map(({ node_id }) => node_id)).to.have.members(['n1', 'twin']);
  });
});
