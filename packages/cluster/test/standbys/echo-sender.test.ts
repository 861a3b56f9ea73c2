import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import type { ToldMembers } from '../../src/membership/membership-list.ts';
import type { SignedList } from '../../src/membership/signed-list.ts';
import { EchoSender } from '../../src/standbys/echo-sender.ts';
import type { EchoNews } from '../../src/standbys/echo-wire.ts';
import { Heartbeats } from '../../src/standbys/heartbeats.ts';

const member = {
  id: 4,
  name: 'n4',
  apiAddress: 'http://10.0.0.4:8200',
  clusterAddress: '10.0.0.4:8201',
  certificate: 'ab'.repeat(32),
  nonVoter: false,
};
const committed = { index: 20, members: [member] };

/** One echo to node 2, and what became of it. */
async function echoed(answer: { readonly status: number; readonly json: unknown }) {
  const told: (ToldMembers & { readonly from: number })[] = [];
  const intervals: (number | undefined)[] = [];
  const lists: (SignedList & { readonly from: number })[] = [];
  const heartbeats = new Heartbeats(1_000, 0);
  let answered = false;
  const fail = heartbeats.failed.bind(heartbeats);
  heartbeats.failed = (at) => {
    fail(at);
    answered = true;
  };
  const arrived = heartbeats.answered.bind(heartbeats);
  heartbeats.answered = (...said) => {
    arrived(...said);
    answered = true;
  };
  const echoSender = new EchoSender({
    client: { post: async () => answer },
    heartbeats,
    intervalMs: 60_000,
    target: () => 2,
    news: () => ({}) as EchoNews,
    onState: () => undefined,
    onRemoved: () => undefined,
    onInterval: (theirsMs) => intervals.push(theirsMs),
    onMembers: (from, members) => told.push({ from, ...members }),
    onList: (from, list) => lists.push({ from, ...list }),
  });
  echoSender.start();
  await until(() => answered);
  await new Promise((resolve) => setImmediate(resolve));
  echoSender.stop();
  return { told, intervals, lists };
}

const reply = { commitIndex: 3, utcMs: 1, replication: { performance: 'disabled', disasterRecovery: 'disabled' } };

describe('an echo', () => {
  it('that a node answers which is not the active one brings whom that knows to be members', async () => {
    const { told } = await echoed({ status: 503, json: { active: false, committed } });
    expect(told).to.deep.equal([{ from: 2, ...committed }]);
  });

  it('that is refused for its interval tells the one of the active node', async () => {
    expect(await echoed({ status: 409, json: { intervalMs: 250 } })).to.deep.include({ told: [], intervals: [250] });
    expect(await echoed({ status: 409, json: {} })).to.deep.include({ told: [], intervals: [undefined] });
  });

  for (const status of [200, 503])
    it(`hands on the signed membership list of an answer with status ${status}`, async () => {
      const list = { text: 'a list', signature: 'c2lnbmVk' };
      expect((await echoed({ status, json: { ...reply, list } })).lists).to.deep.equal([{ from: 2, ...list }]);
      expect((await echoed({ status, json: { ...reply, list: { text: 1 } } })).lists).to.deep.equal([]);
      expect((await echoed({ status, json: reply })).lists).to.deep.equal([]);
    });

  for (const [what, status, json] of [
    ['another refusal', 500, { committed }],
    ['no list', 503, { active: false }],
    ['nothing', 503, undefined],
    ['an ill-formed list', 503, { committed: { index: 20, members: [{ id: 4 }] } }],
    ['an ill-formed index', 503, { committed: { ...committed, index: -1 } }],
  ] as const)
    it(`brings nobody with ${what}`, async () => {
      expect((await echoed({ status, json })).told).to.deep.equal([]);
    });
});
