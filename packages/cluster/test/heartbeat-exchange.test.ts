import { noObserver } from '@transitd/process';
import { expect } from 'chai';
import { until } from '../../process/test/until.ts';
import { HeartbeatExchange, type HeartbeatExchangeOptions } from '../src/heartbeat-exchange.ts';
import type { CommittedMembers } from '../src/membership/membership.ts';
import type { SignedList } from '../src/membership/signed-list.ts';
import { MemberEvents } from '../src/ports/member-events.ts';
import { Heartbeats } from '../src/standbys/heartbeats.ts';

const member = {
  id: 4,
  name: 'n4',
  apiAddress: 'http://10.0.0.4:8200',
  clusterAddress: '10.0.0.4:8201',
  certificate: 'ab'.repeat(32),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
};
const committed = { index: 20, members: [member] };

/** Sends one heartbeat to node 2; returns what its answer reported. @param during - called while the exchange runs */
async function sent(
  answer: { readonly status: number; readonly json: unknown },
  during: (exchange: HeartbeatExchange, status: { leader: number }) => void = () => undefined,
) {
  const reports: (CommittedMembers & { readonly from: number })[] = [];
  const intervals: (number | undefined)[] = [];
  const lists: (SignedList & { readonly from: number })[] = [];
  const heartbeats = new Heartbeats(1_000, 0);
  const status = { leader: 0, nodeId: 1 };
  const receivers: number[] = [];
  let answered = false;
  const failedOriginal = heartbeats.failed.bind(heartbeats);
  heartbeats.failed = (at) => {
    failedOriginal(at);
    answered = true;
  };
  const answeredOriginal = heartbeats.answered.bind(heartbeats);
  heartbeats.answered = (...args) => {
    answeredOriginal(...args);
    answered = true;
  };
  const log = { error: (facts: { readonly theirsMs: number | undefined }) => intervals.push(facts.theirsMs) };
  const membershipList = {
    identity: {},
    knownMembers: [{ id: 2 }],
    member: () => undefined,
    useReport: (from: number, members: CommittedMembers) => reports.push({ from, ...members }) > 0,
  };
  const exchange = new HeartbeatExchange({
    host: {
      ...{ log, observer: noObserver, events: new MemberEvents(), api: { url: 'http://10.0.0.1:8200' } },
      config: { cluster_heartbeat_interval: 60_000 },
    },
    role: { isUnsealed: true },
    storage: {
      driver: { status: () => status, writeMs: undefined },
      replica: { status: () => ({ appliedIndex: 1 }) },
      diskLow: () => false,
    },
    connections: {
      ...{ membershipList, removed: false },
      peers: { client: { post: async (to: number) => receivers.push(to) && answer } },
    },
    heartbeats,
    lists: {
      newest: undefined,
      receive: async (list: SignedList, { id: from }: { readonly id: number }) => lists.push({ from, ...list }),
    },
    comparison: { verdict: 'unknown', compareWith: () => undefined },
  } as unknown as HeartbeatExchangeOptions);
  exchange.start();
  await until(() => answered);
  await new Promise((resolve) => setImmediate(resolve));
  during(exchange, status);
  await new Promise((resolve) => setImmediate(resolve));
  exchange.stop();
  return { reports, intervals, lists, receivers };
}

const reply = { commitIndex: 3, utcMs: 1, replication: { performance: 'disabled', disasterRecovery: 'disabled' } };

describe('a heartbeat', () => {
  it('reports the members in the answer of a node that is not active', async () => {
    const { reports } = await sent({ status: 503, json: { active: false, committed } });
    expect(reports).to.deep.equal([{ from: 2, ...committed }]);
  });

  it('is sent at once after a change of the leader, but not while there is none', async () => {
    const answer = { status: 503, json: { active: false } };
    const after = (leader: number) =>
      sent(answer, (exchange, status) => {
        status.leader = leader;
        exchange.sendNow();
      });
    expect((await after(3)).receivers).to.deep.equal([2, 3]);
    expect((await after(0)).receivers).to.deep.equal([2]);
  });

  it('reports the active node’s interval when refused because its own differs', async () => {
    expect(await sent({ status: 409, json: { intervalMs: 250 } })).to.deep.include({ reports: [], intervals: [250] });
    expect(await sent({ status: 409, json: {} })).to.deep.include({ reports: [], intervals: [undefined] });
  });

  for (const status of [200, 503])
    it(`passes on the signed membership list of an answer with status ${status}`, async () => {
      const list = { text: 'a list', signature: 'c2lnbmVk' };
      expect((await sent({ status, json: { ...reply, list } })).lists).to.deep.equal([{ from: 2, ...list }]);
      expect((await sent({ status, json: { ...reply, list: { text: 1 } } })).lists).to.deep.equal([]);
      expect((await sent({ status, json: reply })).lists).to.deep.equal([]);
    });

  for (const [what, status, json] of [
    ['another refusal', 500, { committed }],
    ['no list', 503, { active: false }],
    ['nothing', 503, undefined],
    ['a malformed list', 503, { committed: { index: 20, members: [{ id: 4 }] } }],
    ['a malformed index', 503, { committed: { ...committed, index: -1 } }],
  ] as const)
    it(`reports no members with ${what}`, async () => {
      expect((await sent({ status, json })).reports).to.deep.equal([]);
    });
});
