import { expect } from 'chai';
import { ClusterReports } from '../../src/reports/cluster-reports.ts';

/** Reports of node 1 in a cluster with these other members. */
function reportsOf(answers: Readonly<Record<number, () => Promise<object>>>) {
  const calls: { readonly id: number; readonly timeoutMs: number }[] = [];
  const members = [1, ...Object.keys(answers).map(Number)].map((id) => ({
    id,
    name: `n${id}`,
    apiAddress: `http://n${id}`,
    clusterAddress: `n${id}:1`,
  }));
  const member = {
    reporter: { report: async () => ({ own: true }) },
    peers: {
      membershipList: { members },
      calls: {
        report: (id: number, timeoutMs: number) => {
          calls.push({ id, timeoutMs });
          return answers[id]?.() ?? Promise.reject(new Error('unknown'));
        },
      },
    },
    engine: {
      kind: 'raft',
      status: () => ({ nodeId: 1 }),
      driver: { consensus: () => ({ conf: { voters: [1, 2], votersOutgoing: [] } }) },
    },
  } as unknown as ConstructorParameters<typeof ClusterReports>[0];
  const host = { config: { node_id: 'n1', cluster_addr: 'n1:1' }, api: { url: 'http://n1' } };
  return { reports: new ClusterReports(member, host as unknown as ConstructorParameters<typeof ClusterReports>[1]), calls };
}

describe('the reports of all members', () => {
  it('include this node without a call, the other nodes by a call, and the reason why one gave none', async () => {
    const { reports, calls } = reportsOf({
      2: async () => ({ two: true }),
      3: () => Promise.reject(new Error('the call failed', { cause: new Error('node 3 at n3:1: ECONNREFUSED') })),
    });
    const { asked, nodes } = await reports.view();
    expect(asked).to.equal('n1');
    expect(nodes.map(({ name, voter, report, error }) => ({ name, voter, report, error }))).to.deep.equal([
      { name: 'n1', voter: true, report: { own: true }, error: undefined },
      { name: 'n2', voter: true, report: { two: true }, error: undefined },
      { name: 'n3', voter: false, report: undefined, error: 'n3 at n3:1: ECONNREFUSED' },
    ]);
    expect(calls).to.deep.equal([2, 3].map((id) => ({ id, timeoutMs: 1000 })));
  });

  it('cost one round of calls for many callers at a time', async () => {
    const { reports, calls } = reportsOf({ 2: async () => ({}) });
    await Promise.all(Array.from({ length: 100 }, () => reports.view()));
    expect(calls).to.have.length(1);
  });
});
