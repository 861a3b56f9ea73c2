import { expect } from 'chai';
import { Fingerprints } from '../../src/exhaustive/fingerprints.ts';
import { Column, Level } from '../../src/exhaustive/level.ts';

describe('Fingerprints', () => {
  it('count each state once, however many and however similar', () => {
    const met = new Fingerprints();
    const states = Array.from({ length: 20_000 }, (_, at) =>
      Array.from({ length: 1 + (at % 4) }, (_each, place) => (at >> (4 * place)) & 0xff),
    );
    const different = new Set(states.map(String));
    expect(states.filter((state) => met.add(state))).to.have.lengthOf(different.size);
    expect(states.filter((state) => met.add(state))).to.have.lengthOf(0);
    expect(met.size).to.equal(different.size);
  });

  it('distinguish states by length, by order, and by bits at either end', () => {
    const met = new Fingerprints();
    for (const state of [[0], [0, 0], [1, 2], [2, 1], [0x8000, 0], [0, 0x8000], [0x8000, 0x8000], [0xffff], [0xffff, 0]]) {
      expect(met.add(state), String(state)).to.equal(true);
    }
  });
});

describe('Level', () => {
  it('returns the states in order, across its chunks, and releases them', () => {
    const level = new Level();
    const most = 2 ** 16 - 1;
    const lengths = [...new Array<number>(15).fill(most), 2 ** 15, 2 ** 15 - 1, 3, ...new Array<number>(17).fill(most), 1];
    const states = lengths.map((length, at) => new Array<number>(length).fill(at));
    for (const state of states) level.push(state);
    expect(level.size).to.equal(states.length);
    const drained = [...level.drain()];
    expect(drained.map((state) => [state.length, state[0], state.at(-1)])).to.deep.equal(
      states.map((state) => [state.length, state[0], state.at(-1)]),
    );
    expect([level.size, ...level.drain()]).to.deep.equal([0]);
  });

  it('refuses a number of more than two bytes, and a state with no numbers or too many', () => {
    expect(() => new Level().push([1, 0x10000])).to.throw(RangeError, 'one core has too many states');
    for (const length of [0, 2 ** 16]) {
      expect(() => new Level().push(new Array<number>(length).fill(1))).to.throw(RangeError, 'empty or too long');
    }
  });
});

describe('Column', () => {
  it('keeps numbers in order, and returns none after its end', () => {
    const column = new Column();
    for (let at = 0; at < 5_000; at++) column.push(2 ** 32 - 1 - at);
    expect([column.at(0), column.at(1_024), column.at(4_999)]).to.deep.equal([2 ** 32 - 1, 2 ** 32 - 1_025, 2 ** 32 - 5_000]);
    expect(() => column.at(5_000)).to.throw(RangeError);
  });
});
