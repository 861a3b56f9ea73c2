// @live
import { X509Certificate } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Limits } from '@transitd/api';
import { Connections } from '@transitd/http';
import type { Node } from '@transitd/node';
import { version } from '@transitd/process';
import { expect } from 'chai';
import { makeCertificate } from '../../process/test/certificate.ts';
import { added, loadOf, type ThreadLoad } from '../src/gateways/thread-load.ts';
import { Metrics } from '../src/metrics/metrics.ts';

const sources = { node: () => undefined };
/** A node with the parts that metrics read. */
const nodeWith = ({ member, ...parts }: { readonly member?: object; readonly [part: string]: unknown }): Node =>
  ({
    clock: { isTrusted: true, deviationS: 0 },
    member: {
      engine: { featureLevel: 1, diskStalledMs: 0 },
      usage: { keysNearLimit: 0 },
      replica: { status: () => ({ appliedIndex: 10, commitIndex: 10 }) },
      ...member,
    },
    ...parts,
  }) as unknown as Node;
const lines = async (metrics: Metrics, pattern: RegExp): Promise<string[]> =>
  (await metrics.prometheus()).split('\n').filter((line) => !line.startsWith('#') && pattern.test(line));

describe('cluster metrics', () => {
  it('include the gauges of the active node only while this node is active', async () => {
    const reports = new Map([[2, { appliedIndex: 3, agoMs: 900 }]]);
    const server = (id: number, role: 'leader' | 'voter', healthy: boolean) => ({
      member: { id, name: `n${id}` },
      role,
      healthy,
    });
    const servers = [server(1, 'leader', true), server(2, 'voter', false)];
    const cluster = {
      membershipList: { members: [{}, {}] },
      autopilot: { latestState: { healthy: false, failureTolerance: 1, servers } },
      standbys: { report: (id: number) => reports.get(id) },
      rotation: { status: { phase: 'announced', waitsFor: ['n2'] } },
    };
    let node: Node | undefined = nodeWith({ active: true, member: { cluster } });
    const metrics = new Metrics('t', { node: () => node });
    const pattern = /autopilot|follower_|raft_peers|authority/;
    expect(await lines(metrics, pattern)).to.have.members([
      't_raft_peers 2',
      't_autopilot_healthy 0',
      't_autopilot_failure_tolerance 1',
      't_autopilot_node_healthy{node_id="n1"} 1',
      't_autopilot_node_healthy{node_id="n2"} 0',
      't_raft_storage_follower_applied_index_delta{peer_id="n2"} 7',
      't_raft_storage_follower_last_heartbeat_seconds{peer_id="n2"} 0.9',
      't_raft_authority_rotation_in_progress 1',
      't_raft_authority_rotation_waits_for{peer_id="n2"} 1',
    ]);
    cluster.rotation.status = { phase: 'none', waitsFor: [] };
    expect(await lines(metrics, /authority/)).to.deep.equal(['t_raft_authority_rotation_in_progress 0']);
    node = nodeWith({ active: false, member: { cluster } });
    expect(await lines(metrics, pattern)).to.deep.equal(['t_raft_peers 2']);
    node = undefined;
    expect(await lines(metrics, pattern)).to.deep.equal([]);
  });

  it('report for how long a write to the disk has hung, in seconds', async () => {
    const metrics = new Metrics('t', { node: () => nodeWith({ member: { engine: { featureLevel: 1, diskStalledMs: 1500 } } }) });
    expect(await lines(metrics, /disk_stalled/)).to.deep.equal(['t_disk_stalled_seconds 1.5']);
  });

  it('count requests refused by a rate limit', async () => {
    const metrics = new Metrics('t', sources);
    metrics.limited.inc();
    expect((await metrics.json(new Date())) as { Counters: object[] })
      .to.have.property('Counters')
      .that.deep.includes({ Name: 't_quota_rate_limit_violation', Count: 1, Labels: {} });
  });

  it('record the events of the observer', async () => {
    const metrics = new Metrics('t', sources);
    const { observer } = metrics;
    observer.committed(3);
    observer.committed(5);
    observer.roleChanged('leader');
    observer.leadershipLost(1000);
    observer.steppedDown(20);
    observer.lastContact(40);
    observer.heartbeatAnswered('n2', 2);
    observer.heartbeatFailed('n2');
    observer.forwarded(9);
    observer.forwardFailed();
    expect(await lines(metrics, /raft_apply|_sum|state_leader|_errors/)).to.include.members([
      't_raft_apply 2',
      't_raft_commit_time_sum 8',
      't_raft_state_leader 1',
      't_core_leadership_lost_sum 1000',
      't_core_step_down_sum 20',
      't_raft_leader_last_contact_sum 40',
      't_ha_rpc_client_echo_sum{peer_id="n2"} 2',
      't_ha_rpc_client_echo_errors{peer_id="n2"} 1',
      't_ha_rpc_client_forward_sum 9',
      't_ha_rpc_client_forward_errors 1',
    ]);
  });

  it('give the count, sum and mean of durations as JSON, for each set of labels', async () => {
    const metrics = new Metrics('t', sources);
    for (const [peer, ms] of [['n2', 2] as const, ['n2', 4] as const, ['n3', 10] as const])
      metrics.observer.heartbeatAnswered(peer, ms);
    const { Samples } = (await metrics.json(new Date())) as { Samples: { Name: string }[] };
    expect(Samples.filter(({ Name }) => /echo|step_down/.test(Name))).to.have.deep.members([
      { Name: 't_core_step_down', Count: 0, Sum: 0, Mean: 0, Labels: {} },
      { Name: 't_ha_rpc_client_echo', Count: 2, Sum: 6, Mean: 3, Labels: { peer_id: 'n2' } },
      { Name: 't_ha_rpc_client_echo', Count: 1, Sum: 10, Mean: 10, Labels: { peer_id: 'n3' } },
    ]);
  });

  it('count the end of a leadership of a day in a bucket of its own', async () => {
    const metrics = new Metrics('t', sources);
    metrics.observer.leadershipLost(80_000_000);
    expect(await lines(metrics, /leadership_lost_bucket.*"(3600000|86400000)"/)).to.deep.equal([
      't_core_leadership_lost_bucket{le="3600000"} 0',
      't_core_leadership_lost_bucket{le="86400000"} 1',
    ]);
  });
});

describe('metrics of certificates', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-certificates-'));
  after(() => rmSync(folder, { recursive: true }));
  const pem = (name: string, days: number): string => readFileSync(makeCertificate(folder, name, days).cert_file, 'utf8');
  const expiry = (text: string): number => new X509Certificate(text).validToDate.getTime() / 1000;

  it('show when the first certificate of a chain expires, by address, and the authority of the cluster', async () => {
    const [leaf, intermediate, authority] = [pem('leaf', 20), pem('intermediate', 10), pem('authority', 30)];
    const certificates = () => [
      { address: '192.0.2.1:8200', chain: `subject=a comment\n${leaf}${intermediate}`, revocationExpiryMs: 1_700_000_000_000 },
    ];
    const certificate = leaf.replaceAll('CERTIFICATE', 'X509 CERTIFICATE');
    const node = () => nodeWith({ clusterPort: { address: '[2001:db8::1]:8201', certificate, authority } });
    const metrics = new Metrics('t', { node, certificates });
    expect(await lines(metrics, /expiry/)).to.deep.equal([
      `t_certificate_expiry_timestamp_seconds{address="192.0.2.1:8200"} ${expiry(intermediate)}`,
      `t_certificate_expiry_timestamp_seconds{address="[2001:db8::1]:8201"} ${expiry(leaf)}`,
      `t_revocation_list_expiry_timestamp_seconds{address="192.0.2.1:8200"} 1700000000`,
      `t_authority_expiry_timestamp_seconds ${expiry(authority)}`,
    ]);
  });

  it('are absent on a node without certificates', async () => {
    expect(await lines(new Metrics('t', sources), /expiry/)).to.deep.equal([]);
  });
});

it('the version of the release is a label', async () => {
  expect(await lines(new Metrics('t', sources), /build_info/)).to.deep.equal([`t_build_info{version="${version}"} 1`]);
});

describe('load metrics', () => {
  it('show the state of the limits at the time of the scrape', async () => {
    const limits = new Limits({ reads: 1, changes: 1, logins: 1, waiting: 0, body_memory: 1_000_000 });
    const none = { waiting: 0, refused: 0 };
    const ofGateway = {
      ...{ inFlight: 0, reads: { ...none, atWork: 0 }, bodies: { ...none, held: 0 }, connections: { open: 0, evicted: 0 } },
      ...{ pipelining: { waiting: 7, closed: 3 }, unread: { bytes: 8, closed: 4 } },
    };
    const ofMain = (): ThreadLoad => loadOf(limits, new Connections({ own: 16 }), 0);
    const load = { limits, total: () => added(ofMain(), ofGateway), gateways: () => undefined };
    const metrics = new Metrics('t', { ...sources, load });
    const res = new EventEmitter() as ServerResponse;
    limits.reads.enter(res);
    const refused = await Promise.resolve(limits.reads.enter(res)).catch((error: Error) => error.message);
    expect(refused).to.contain('too much to do');
    limits.bodies.reservation(res, { tokenId: 't', address: '192.0.2.1' }).grow(65_537, 165_536, 1_000_000);
    expect(await lines(metrics, /^t_core_(requests|body|connections|unread)/)).to.have.members([
      't_core_requests_executing{kind="reads"} 1',
      't_core_requests_executing{kind="changes"} 0',
      't_core_requests_executing{kind="logins"} 0',
      't_core_requests_executing{kind="forwarded_unauthenticated"} 0',
      't_core_requests_executing{kind="forwarded_unauthenticated_streams"} 0',
      't_core_requests_executing{kind="forwarded_streams"} 0',
      't_core_requests_waiting{kind="reads"} 0',
      't_core_requests_waiting{kind="changes"} 0',
      't_core_requests_waiting{kind="logins"} 0',
      't_core_requests_waiting{kind="forwarded_unauthenticated"} 0',
      't_core_requests_waiting{kind="forwarded_unauthenticated_streams"} 0',
      't_core_requests_waiting{kind="forwarded_streams"} 0',
      't_core_requests_waiting{kind="bodies"} 0',
      't_core_requests_refused{kind="reads"} 1',
      't_core_requests_refused{kind="changes"} 0',
      't_core_requests_refused{kind="logins"} 0',
      't_core_requests_refused{kind="forwarded_unauthenticated"} 0',
      't_core_requests_refused{kind="forwarded_unauthenticated_streams"} 0',
      't_core_requests_refused{kind="forwarded_streams"} 0',
      't_core_requests_refused{kind="bodies"} 0',
      't_core_body_bytes 100000',
      't_core_connections 0',
      't_core_connections_evicted 0',
      't_core_requests_pipelined 7',
      't_core_connections_closed_pipelining 3',
      't_core_unread_response_bytes 8',
      't_core_unread_responses_closed 4',
    ]);
    expect(await lines(metrics, /^t_core_requests_refused.kind="reads"/)).to.have.length(1);
  });
});
