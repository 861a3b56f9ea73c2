import { expect } from 'chai';
import fc from 'fast-check';
import { type Halves, quorumValue, voteResult } from '../../src/quorum/joint.ts';

const ids = [1, 2, 3, 4, 5, 6, 7];
const half = fc.subarray(ids, { minLength: 1 });
const halves: fc.Arbitrary<Halves> = fc.record({
  voters: half,
  votersOutgoing: fc.oneof(fc.constant([]), half),
});

/** Computed by the definition: more than half of each half. */
const isQuorum = ({ voters, votersOutgoing }: Halves, members: readonly number[]): boolean =>
  [voters, votersOutgoing].every(
    (part) => part.length === 0 || part.filter((id) => members.includes(id)).length * 2 > part.length,
  );

const subsets = (of: readonly number[]): number[][] =>
  Array.from({ length: 2 ** of.length }, (_, bits) => of.filter((_id, i) => (bits & (1 << i)) !== 0));

describe('quorumValue', () => {
  it('is the highest value that every member of some quorum reaches, as a search of all sets of nodes finds it', () => {
    fc.assert(
      fc.property(halves, fc.array(fc.nat(9), { minLength: 7, maxLength: 7 }), (conf, values) => {
        const valueFor = (id: number) => values[id - 1] ?? 0;
        const reached = subsets(ids)
          .filter((members) => isQuorum(conf, members))
          .map((members) => Math.min(...members.map(valueFor)));
        expect(quorumValue(conf, valueFor)).to.equal(Math.max(...reached));
      }),
      { numRuns: 300 },
    );
  });

  it('of a joint configuration never exceeds the value of either half', () => {
    const conf = { voters: [1, 2, 3], votersOutgoing: [3, 4, 5] };
    const values = new Map([
      [1, 9],
      [2, 9],
      [3, 5],
      [4, 1],
      [5, 0],
    ]);
    expect(quorumValue(conf, (id) => values.get(id) ?? 0)).to.equal(1);
  });

  it('without any voter is minus infinity', () => {
    expect(quorumValue({ voters: [], votersOutgoing: [] }, () => 5)).to.equal(Number.NEGATIVE_INFINITY);
  });
});

describe('voteResult', () => {
  it('is won when the granting nodes are a quorum, lost when the open answers can no longer make a quorum', () => {
    const votes = fc.array(fc.constantFrom(true, false, undefined), { minLength: 7, maxLength: 7 });
    fc.assert(
      fc.property(halves, votes, (conf, given) => {
        const voteOf = (id: number) => given[id - 1];
        const granting = ids.filter((id) => voteOf(id) === true);
        const hopeful = ids.filter((id) => voteOf(id) !== false);
        const expected = isQuorum(conf, granting) ? 'won' : isQuorum(conf, hopeful) ? 'pending' : 'lost';
        expect(voteResult(conf, voteOf)).to.equal(expected);
      }),
      { numRuns: 500 },
    );
  });
});
