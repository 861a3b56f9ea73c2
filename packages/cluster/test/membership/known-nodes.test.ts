import { expect } from 'chai';
import { KnownNodes } from '../../src/membership/known-nodes.ts';

describe('the members that an unreachable voter knows', () => {
  const connected = (...ids: readonly number[]): ReadonlySet<number> => new Set(ids);

  it('are those at its last connection: it is isolated when all of them have left', () => {
    const known = new KnownNodes();
    known.observe([1, 2, 3], connected(1, 2, 3));
    known.observe([1, 2, 3, 4, 5], connected(1, 2, 4, 5));
    expect(known.isolated([2, 3, 4, 5], [2, 3, 4, 5], connected(2, 4, 5))).to.deep.equal([]);
    expect(known.isolated([3, 4, 5], [3, 4, 5], connected(4, 5))).to.deep.equal([3]);
  });

  it('are the present members for a connected voter', () => {
    const known = new KnownNodes();
    known.observe([1, 2, 3], connected(1, 2, 3));
    known.observe([1, 2, 3, 4, 5], connected(1, 2, 3, 4, 5));
    expect(known.isolated([3, 4, 5], [3, 4, 5], connected(4, 5))).to.deep.equal([]);
    expect(known.isolated([3, 4, 5], [3, 4, 5], connected(3, 4, 5))).to.deep.equal([]);
  });

  it('are none for a voter that this process was never connected to', () => {
    const known = new KnownNodes();
    known.observe([1, 2, 3, 4], connected(1, 2, 4));
    expect(known.isolated([2, 3, 4], [2, 3, 4], connected(2, 4))).to.deep.equal([3]);
  });
});
