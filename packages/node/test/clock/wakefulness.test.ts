import { expect } from 'chai';
import { Wakefulness } from '../../src/clock/wakefulness.ts';

const limitMs = 1_000;
const withLease = (): boolean => true;
const withoutLease = (): boolean => false;

describe('whether a process may say that it leads', () => {
  it('it may while consensus runs, with a lease or for the moment without', () => {
    const process = new Wakefulness(limitMs, 0);
    for (let nowMs = 50; nowMs < 3 * limitMs; nowMs += limitMs - 1) {
      process.ticked(nowMs);
      expect(process.isAwake(nowMs + limitMs - 1, withoutLease)).to.equal(true);
    }
  });

  it('it may not once consensus has not run for so long that another one may lead, unless it holds a lease all the same', () => {
    expect(new Wakefulness(limitMs, 0).isAwake(limitMs, withoutLease)).to.equal(false);
    expect(new Wakefulness(limitMs, 0).isAwake(limitMs, withLease)).to.equal(true);
  });

  it('it may not when it stood still, also after ticks, until it holds a lease; then it may again without', () => {
    const process = new Wakefulness(limitMs, 0);
    for (const nowMs of [limitMs, limitMs + 50, limitMs + 100]) {
      process.ticked(nowMs);
      expect(process.isAwake(nowMs, withoutLease)).to.equal(false);
    }
    expect(process.isAwake(limitMs + 101, withLease)).to.equal(true);
    expect(process.isAwake(limitMs + 102, withoutLease)).to.equal(true);
  });

  it('it may without a lease when it has asked since and a quorum said so, unless it stood still meanwhile', () => {
    const process = new Wakefulness(limitMs, 0);
    expect(process.isAwake(5 * limitMs, withoutLease)).to.equal(false);
    process.confirmed(6 * limitMs, 5 * limitMs);
    expect(process.isAwake(6 * limitMs, withoutLease)).to.equal(false);
    process.confirmed(6 * limitMs + 1, 5 * limitMs + 2);
    expect(process.isAwake(6 * limitMs + 2, withoutLease)).to.equal(true);
    expect(process.isAwake(7 * limitMs + 1, withoutLease)).to.equal(false);
  });

  it('it may not once another clock shows that it stood still, until a quorum has said so to a question asked since', () => {
    const process = new Wakefulness(limitMs, 0);
    process.ticked(100);
    process.paused(110);
    expect(process.isAwake(111, withoutLease)).to.equal(false);
    process.confirmed(112, 105);
    expect(process.isAwake(113, withoutLease)).to.equal(false);
    process.confirmed(114, 111);
    expect(process.isAwake(115, withoutLease)).to.equal(true);
  });
});
