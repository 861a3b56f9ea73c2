import { expect } from 'chai';
import { LagMeter } from '../../src/sessions/lag-meter.ts';

describe('the lag of a secondary', () => {
  it('is the number of entries that it lacks and the age of the oldest one', () => {
    const lag = new LagMeter();
    lag.applied(10);
    expect(lag.at(0)).to.deep.equal({ entries: 0, ms: 0 });
    lag.known(12, 100);
    lag.known(15, 200);
    expect(lag.at(250)).to.deep.equal({ entries: 5, ms: 150 });
    lag.applied(12);
    expect(lag.at(250)).to.deep.equal({ entries: 3, ms: 50 });
    lag.applied(15);
    expect(lag.at(9_999)).to.deep.equal({ entries: 0, ms: 0 });
  });

  it('keeps the age of the oldest missing entry over any number of positions', () => {
    const lag = new LagMeter();
    for (let index = 1; index <= 10_000; index++) lag.known(index, index);
    expect(lag.at(10_000)).to.deep.equal({ entries: 10_000, ms: 9_999 });
    lag.applied(5_000);
    expect(lag.at(10_000).ms).to.be.within(4_800, 5_000);
  });

  it('ignores positions that are old', () => {
    const lag = new LagMeter();
    lag.applied(10);
    lag.known(9, 0);
    expect(lag.at(50)).to.deep.equal({ entries: 0, ms: 0 });
  });
});
