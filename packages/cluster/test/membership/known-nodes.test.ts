import { expect } from 'chai';
import { KnownNodes } from '../../src/membership/known-nodes.ts';

describe('members known to a voter that is away', () => {
  const heard = (...ids: readonly number[]): ReadonlySet<number> => new Set(ids);

  it('are those of the time when it was heard of last: it is stranded when all of them have left', () => {
    const known = new KnownNodes();
    known.observe([1, 2, 3], heard(1, 2, 3));
    known.observe([1, 2, 3, 4, 5], heard(1, 2, 4, 5));
    expect(known.stranded([2, 3, 4, 5], [2, 3, 4, 5], heard(2, 4, 5))).to.deep.equal([]);
    expect(known.stranded([3, 4, 5], [3, 4, 5], heard(4, 5))).to.deep.equal([3]);
  });

  it('are the present ones of a voter that is heard of', () => {
    const known = new KnownNodes();
    known.observe([1, 2, 3], heard(1, 2, 3));
    known.observe([1, 2, 3, 4, 5], heard(1, 2, 3, 4, 5));
    expect(known.stranded([3, 4, 5], [3, 4, 5], heard(4, 5))).to.deep.equal([]);
    expect(known.stranded([3, 4, 5], [3, 4, 5], heard(3, 4, 5))).to.deep.equal([]);
  });

  it('are none of a voter that this process was never connected to', () => {
    const known = new KnownNodes();
    known.observe([1, 2, 3, 4], heard(1, 2, 4));
    expect(known.stranded([2, 3, 4], [2, 3, 4], heard(2, 4))).to.deep.equal([3]);
  });
});
