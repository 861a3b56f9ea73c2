import { expect } from 'chai';
import { readClocks, readWallClock } from '../../src/clock/machine-clocks.ts';

describe('the clocks of this machine', () => {
  it('are read between two readings of the monotonic clock', () => {
    const wall = readWallClock();
    expect(wall.afterMs).to.be.at.least(wall.beforeMs);
    const { beforeMs, afterMs, bootMs } = readClocks();
    expect(afterMs).to.be.at.least(beforeMs);
    expect(bootMs).to.be.greaterThan(0);
  });
});
