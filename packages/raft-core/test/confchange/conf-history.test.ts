import { expect } from 'chai';
import { ConfHistory } from '../../src/confchange/conf-history.ts';
import { soleVoter } from '../../src/confchange/conf-state.ts';
import { InvariantViolation } from '../../src/invariant.ts';

const at = (index: number, ...voters: number[]) => ({ index, conf: { ...soleVoter(1), voters } });

describe('ConfHistory', () => {
  it('returns the configuration as of an index, which need not be the newest', () => {
    const history = new ConfHistory(at(0, 1), [at(4, 1, 2), at(9, 1)]);
    expect([0, 3, 4, 8, 9, 100].map((index) => history.asOf(index).index)).to.deep.equal([0, 0, 4, 4, 9, 9]);
  });

  it('keeps the newest configuration at or below a compaction, and forgets nodes that only older ones named', () => {
    const history = new ConfHistory(at(0, 1, 3), [at(4, 1, 2), at(9, 1)]);
    expect(history.everyone()).to.deep.equal([1, 2, 3]);
    history.compact(6);
    expect(history.asOf(6).index).to.equal(4);
    expect(history.everyone()).to.deep.equal([1, 2]);
    expect(() => history.asOf(3)).to.throw(InvariantViolation);
  });

  it('puts the newest in force, and rolls back several at once when their entries are superseded', () => {
    const history = new ConfHistory(at(0, 1, 2, 3), [at(4, 1, 2), at(5, 1), at(9, 1, 2)]);
    expect(history.newest.index).to.equal(9);
    expect(history.truncate(5)).to.equal(2);
    expect(history.newest).to.deep.equal(at(4, 1, 2));
    expect(history.truncate(5)).to.equal(0);
    history.append(at(6, 1, 2, 3));
    expect(history.countAbove(4, 1)).to.equal(1);
    expect(() => history.truncate(0)).to.throw(/never rolled back/);
  });

  it('forgets everything when a snapshot is installed', () => {
    const history = new ConfHistory(at(0, 1, 2, 3), [at(4, 1, 2)]);
    history.install(at(7, 1));
    expect(history.newest).to.deep.equal(at(7, 1));
    expect(() => history.asOf(6)).to.throw(InvariantViolation);
  });

  it('refuses invalid configurations and entries out of order', () => {
    expect(() => new ConfHistory(at(0, 2, 1), [])).to.throw(/well-formed/);
    expect(() => new ConfHistory(at(0, 1), [at(4, 1), at(4, 1)])).to.throw(/ascend/);
  });
});
