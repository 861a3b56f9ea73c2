import { bodyText, dataReply, Rendered, type Reply } from '@transitd/http';
import { expect } from 'chai';
import { responseEntry } from '../src/entry.ts';

const nobody = { shown: {}, first: { results: undefined, text: '{}' } };
const unrefused = { policyResults: undefined, refusedBy: undefined };
const mount = { point: 'sys/', type: 'system' };
const entryOf = (reply: Reply, hash = (text: string): string => `hash of ${text}`): Promise<string> =>
  responseEntry({ auth: nobody, request: '{}' }, { ...unrefused, reply, data: {}, mount, time: '', repeatsData: false }, hash);

describe('the entry of a response', () => {
  const auth = { client_token: 't', display_name: 'd', policies: ['p'], token_policies: ['p'], token_type: 'service' };
  const data = { at: new Date(0), left: undefined, list: [undefined, 1, null, 'x'], deep: { type: 'rsa-2048', no: false } };

  for (const value of [data, null, {}])
    it(`is the same for data, for the same data rendered, and for the unwrapped response: ${JSON.stringify(value)}`, async () => {
      const reply: Reply = {
        status: 200,
        envelope: { data: value, auth, wrapInfo: { token: 'w', creation_path: 'p' }, warnings: [] },
      };
      const rendered = { ...reply, envelope: { ...reply.envelope, data: new Rendered(JSON.stringify(value)) } };
      const expected = await entryOf(reply);
      expect(await entryOf(rendered)).to.equal(expected);
      expect(await entryOf({ status: 200, unwrapped: bodyText(reply) ?? '' })).to.equal(expected);
      expect(JSON.parse(expected).response).to.have.property('auth');
    });

  it('has the data of JSON without an envelope, and the messages of an error', async () => {
    expect(JSON.parse(await entryOf({ status: 200, json: { a: 'b' } })).response.data).to.deep.equal({ a: 'hash of b' });
    expect(JSON.parse(await entryOf({ status: 400, errors: ['no', 'never'] })).error).to.equal('no; never');
  });

  for (const [name, reply] of Object.entries({
    'data that is read only while it is sent': dataReply(new Rendered('[', (async function* () {})())),
    'rendered data that is not JSON': dataReply(new Rendered('{')),
    'a text': { status: 200, body: 'not JSON' },
  }) satisfies [string, Reply][])
    it(`has no data of ${name}`, async () => {
      expect(JSON.parse(await entryOf(reply)).response).to.not.have.property('data');
    });
});

describe('the entries of long responses', () => {
  /** Each look at the clock takes a millisecond, so that work in slices yields after four looks. */
  const { now } = performance;
  before(() => {
    let looks = 0;
    performance.now = () => looks++;
  });
  after(() => {
    performance.now = now;
  });

  /** Returns the order in which texts of simultaneous responses are hashed, without repetitions. */
  async function orderOf(count: number): Promise<string[]> {
    const order: string[] = [];
    const hash = (text: string): string => {
      const [response = ''] = text.split('-');
      if (order.at(-1) !== response) order.push(response);
      return '';
    };
    const entries = ['a', 'b', 'c'].map((name) => {
      const texts = Array.from({ length: count }, (_, n) => `${name}-${n}`);
      const reply = { status: 200, body: JSON.stringify({ data: { texts } }) };
      return entryOf(reply, hash);
    });
    await Promise.all(entries);
    return order;
  }

  it('are made one after the other, so that the values of one response are in memory at a time', async () => {
    expect(await orderOf(20_000)).to.deep.equal(['a', 'b', 'c']);
  });

  it('let those of short responses go on meanwhile', async () => {
    expect((await orderOf(1000)).length).to.be.above(3);
  });
});
