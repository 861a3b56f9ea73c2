import { expect } from 'chai';
import { responseEntry } from '../src/entry.ts';

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
    const mount = { point: 'sys/', type: 'system' };
    const entries = ['a', 'b', 'c'].map((name) => {
      const texts = Array.from({ length: count }, (_, n) => `${name}-${n}`);
      const reply = { status: 200, body: JSON.stringify({ data: { texts } }) };
      return responseEntry({ auth: '{}', request: '{}' }, { reply, data: {}, mount, time: '', repeatsData: false }, hash);
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
