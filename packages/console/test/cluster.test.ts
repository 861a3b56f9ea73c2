import { expect } from 'chai';
import { type ClusterView, clusterViewIn, type Member, type Work } from '../app/cluster/members.ts';
import { reignsOf } from '../app/cluster/reigns.ts';
import { connectionTone, replicationIn, roleOf } from '../app/cluster/replication.ts';
import { pointsMax, quantile, withView } from '../app/cluster/samples.ts';
import { tolerance, verdictOf } from '../app/cluster/verdict.ts';

const report = (more: object = {}) => ({
  utc_ms: 10_000,
  health: { code: 473 },
  serves: 'reader',
  raft: { term: 2, leader: 'n1', state_digest: 'same' },
  disk: {},
  leaders: [],
  ...more,
});
const active = report({ health: { code: 200 }, serves: 'active' });
const node = (name: string, more: object) => ({ name, id: name, voter: true, ...more });
const view = (...nodes: readonly object[]): ClusterView => clusterViewIn({ asked: 'n1', nodes });
const healthy = [node('n1', { report: active }), node('n2', { report: report() }), node('n3', { report: report() })];
const down = node('n3', { error: 'no answer within 1000 ms' });

describe('the state of the cluster', () => {
  for (const [word, nodes] of [
    ['healthy', healthy],
    ['no failure tolerated', [healthy[0] ?? {}, healthy[1] ?? {}, down]],
    ['no active node', [node('n1', { report: report({ health: { code: 474 }, serves: '' }) }), down]],
    ['degraded', [...healthy, node('n4', { voter: false, report: report({ serves: '' }) })]],
    ['records differ', [...healthy.slice(0, 2), node('n3', { report: report({ raft: { state_digest: 'different' } }) })]],
    ['disk space is low', [...healthy.slice(0, 2), node('n3', { report: report({ disk: { low: true } }) })]],
    ['healthy', [node('n1', { report: active })]],
  ] as const)
    it(`of ${nodes.length} nodes is "${word}"`, () => expect(verdictOf(view(...nodes)).word).to.equal(word));

  it('counts how many more voters may fail', () => {
    expect(tolerance(view(...healthy).members)).to.equal(1);
    expect(tolerance(view(healthy[0] ?? {}, healthy[1] ?? {}, down).members)).to.equal(0);
    expect(tolerance(view(healthy[0] ?? {}, down, node('n4', { error: 'x' })).members)).to.equal(-1);
  });

  it('of nodes on etcd needs no majority, and shows their revisions', () => {
    const on = (name: string, more: object) =>
      node(name, {
        voter: false,
        report: { ...report(more), raft: undefined, etcd: { term: 9, commit_index: 40, applied_index: 39 } },
      });
    const three = [on('n1', { health: { code: 200 }, serves: 'active' }), on('n2', {}), on('n3', {})];
    const { members } = view(...three);
    expect([verdictOf(view(...three)).word, tolerance(members)]).to.deep.equal(['healthy', 2]);
    expect(members[1]?.report).to.deep.include({ term: 9, commit: 40, applied: 39, log: undefined });
    const [first = {}] = three;
    const gone = (name: string) => node(name, { voter: false, error: 'gone' });
    expect(verdictOf(view(first, gone('n2'), gone('n3'))).word).to.equal('no failure tolerated');
  });

  it('is read from any answer without a fault', () => {
    for (const odd of [undefined, null, 7, [], {}, { nodes: 'x' }, { nodes: [null, 7, { report: { raft: [], leaders: [1] } }] }])
      expect(() => verdictOf(clusterViewIn(odd))).not.to.throw();
  });
});

describe('the replication of the cluster', () => {
  const secondary = { node_id: 'west', connection_status: 'connected', last_wal: 40, lag_entries: 2, lag_ms: 30 };

  it('names the secondaries of a primary, and how far each is behind', () => {
    const view = replicationIn({ mode: 'primary', state: 'primary', epoch: 1, last_wal: 42, secondaries: [secondary] });
    expect(view).to.deep.include({ position: 42, epoch: 1 });
    const none = { heartbeatMs: undefined };
    expect(view.connections).to.deep.equal([
      { ...none, name: 'west', status: 'connected', position: 40, lagEntries: 2, lagMs: 30 },
    ]);
    expect([
      roleOf(view).word,
      connectionTone(view.connections?.[0] ?? { ...none, name: '', status: '', position: 0, lagEntries: 0, lagMs: 0 }),
    ]).to.deep.equal(['primary', 'ok']);
  });

  it('names the primary of a secondary, and how far this cluster is behind', () => {
    const primaries = [{ cluster_address: '10.0.0.1:8201', connection_status: 'connecting', last_heartbeat_duration_ms: 7 }];
    const status = { mode: 'secondary', state: 'secondary', last_remote_wal: 9, connection_status: 'connecting', lag_entries: 3 };
    const { position, connections = [] } = replicationIn({ ...status, primaries });
    expect(position).to.equal(9);
    expect(connections).to.deep.equal([
      { name: '10.0.0.1:8201', status: 'connecting', position: undefined, lagEntries: 3, lagMs: undefined, heartbeatMs: 7 },
    ]);
    expect(connections.map(connectionTone)).to.deep.equal(['warn']);
  });

  it('distinguishes unknown connections from a set without other clusters', () => {
    expect(replicationIn({ mode: 'primary', state: 'primary' }).connections).to.equal(undefined);
    expect(replicationIn({ mode: 'primary', state: 'primary', secondaries: [] }).connections).to.deep.equal([]);
  });

  it('is read from any answer without a fault', () => {
    for (const odd of [undefined, null, 7, [], {}, { mode: 7, primaries: [null] }, { secondaries: [7, {}] }])
      expect(() => roleOf(replicationIn(odd))).not.to.throw();
    expect(replicationIn({}).mode).to.equal('disabled');
  });
});

describe('the timeline of leaders', () => {
  const member = (leaders: readonly object[]): Member => view(node('n', { report: report({ leaders }) })).members[0] as Member;

  it('has one leader for each term, from the time when the first node learned of it', () => {
    const first = member([
      { term: 1, leader: 'n1', utc_ms: 100 },
      { term: 4, leader: 'n2', utc_ms: 520 },
    ]);
    const second = member([{ term: 4, leader: 'n2', utc_ms: 500 }]);
    expect(reignsOf([first, second])).to.deep.equal([
      { term: 1, leader: 'n1', fromUtcMs: 100 },
      { term: 4, leader: 'n2', fromUtcMs: 500 },
    ]);
  });
});

describe('the plots', () => {
  const work = (requests: number, durations: readonly (readonly [number, number])[] = []): Work => ({
    requests,
    refused: 0,
    failed: 0,
    writes: requests / 2,
    durations,
  });
  const at = (utc_ms: number, requests: number) =>
    view(node('n1', { report: report({ utc_ms, work: work(requests), memory_bytes: 2 ** 20 }) }));

  it('show rates between two reports, by the clock of the node', () => {
    const [before, next] = [at(10_000, 100), at(12_000, 150)];
    const [, point] = withView(withView([], undefined, before), before, next);
    expect(point?.samples.get('n1')).to.include({ requests: 25, writes: 12.5, memory: 1 });
  });

  it('show no rate for the step over a restart', () => {
    const [before, next] = [at(10_000, 100), at(12_000, 3)];
    expect(withView([], before, next)[0]?.samples.get('n1')?.requests).to.equal(undefined);
  });

  it('keep five minutes', () => {
    let points = withView([], undefined, at(0, 0));
    for (let n = 0; n < 2 * pointsMax; n++) points = withView(points, undefined, at(n, n));
    expect(points).to.have.length(pointsMax);
  });

  it('estimate quantiles within a bucket, and none without requests', () => {
    const [from, to] = [
      work(10, [
        [1, 10],
        [10, 10],
      ]),
      work(110, [
        [1, 60],
        [10, 110],
      ]),
    ];
    expect(quantile(0.5, from, to)).to.equal(1);
    expect(quantile(0.75, from, to)).to.equal(5.5);
    expect(quantile(0.5, to, to)).to.equal(undefined);
  });
});
