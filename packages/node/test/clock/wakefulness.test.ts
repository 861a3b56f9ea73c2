import { expect } from 'chai';
import { Wakefulness } from '../../src/clock/wakefulness.ts';

const limitMs = 1_000;
const withLease = true;
const withoutLease = false;

describe('Wakefulness', () => {
  it('is awake while consensus runs, with or without a lease', () => {
    const process = new Wakefulness(limitMs, 0);
    for (let nowMs = 50; nowMs < 3 * limitMs; nowMs += limitMs - 1) {
      process.ticked(nowMs);
      expect(process.isAwake(nowMs + limitMs - 1, withoutLease)).to.equal(true);
    }
  });

  it('is not awake after consensus has not run for the length of a lease, unless a lease holds', () => {
    expect(new Wakefulness(limitMs, 0).isAwake(limitMs, withoutLease)).to.equal(false);
    expect(new Wakefulness(limitMs, 0).isAwake(limitMs, withLease)).to.equal(true);
  });

  it('is not awake after a pause, despite ticks, until a lease holds; stays awake when that lease has ended', () => {
    const process = new Wakefulness(limitMs, 0);
    for (const nowMs of [limitMs, limitMs + 50, limitMs + 100]) {
      process.ticked(nowMs);
      expect(process.isAwake(nowMs, withoutLease)).to.equal(false);
    }
    expect(process.isAwake(limitMs + 101, withLease)).to.equal(true);
    expect(process.isAwake(limitMs + 102, withoutLease)).to.equal(true);
  });

  it('is awake without a lease after a quorum has confirmed a request made since the pause, unless it paused again', () => {
    const process = new Wakefulness(limitMs, 0);
    expect(process.isAwake(5 * limitMs, withoutLease)).to.equal(false);
    process.confirmed(6 * limitMs, 5 * limitMs);
    expect(process.isAwake(6 * limitMs, withoutLease)).to.equal(false);
    process.confirmed(6 * limitMs + 1, 5 * limitMs + 2);
    expect(process.isAwake(6 * limitMs + 2, withoutLease)).to.equal(true);
    expect(process.isAwake(7 * limitMs + 1, withoutLease)).to.equal(false);
  });

  it('is not awake after another clock showed a pause, until a quorum has confirmed a request made since', () => {
    const process = new Wakefulness(limitMs, 0);
    process.ticked(100);
    process.paused(110);
    expect(process.isAwake(111, withoutLease)).to.equal(false);
    process.confirmed(112, 105);
    expect(process.isAwake(113, withoutLease)).to.equal(false);
    process.confirmed(113, 114); // requested before the monotonic clock went back
    expect(process.isAwake(113, withoutLease)).to.equal(false);
    process.confirmed(114, 111);
    expect(process.isAwake(115, withoutLease)).to.equal(true);
  });
});
