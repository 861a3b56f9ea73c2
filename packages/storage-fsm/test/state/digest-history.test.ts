import { expect } from 'chai';
import { DigestHistory } from '../../src/state/digest-history.ts';

describe('DigestHistory', () => {
  const after = (last: number): DigestHistory => {
    const history = new DigestHistory();
    for (let index = 1; index <= last; index++) history.note(index, BigInt(index));
    return history;
  };

  it('keeps the newest 1,024 indexes', () => {
    const history = after(5000);
    expect([3976, 3977, 5000, 5001].map((index) => history.at(index))).to.deep.equal([undefined, 3977n, 5000n, undefined]);
  });

  it('keeps the newest 64 multiples of 4,096, however many entries follow', () => {
    const history = after(65 * 4096 + 2000);
    expect([4096, 2 * 4096, 65 * 4096].map((index) => history.at(index))).to.deep.equal([undefined, 8192n, 266_240n]);
  });

  it('starts over with another state', () => {
    const history = after(4096);
    history.restart(9000, 7n);
    expect([4096, 4095, 9000].map((index) => history.at(index))).to.deep.equal([undefined, undefined, 7n]);
  });
});
