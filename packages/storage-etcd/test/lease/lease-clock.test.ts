import { expect } from 'chai';
import { LeaseClock } from '../../src/lease/lease-clock.ts';

describe('the clock of a lease', () => {
  it('counts from when the keep-alive was sent, and less than etcd does', () => {
    const clock = new LeaseClock();
    clock.renewed({ sentMs: 1000, ttlSeconds: 10 });
    expect(clock.endMs).to.equal(10_500);
  });

  it('does not go back when answers overtake each other', () => {
    const clock = new LeaseClock();
    clock.renewed({ sentMs: 2000, ttlSeconds: 10 });
    clock.renewed({ sentMs: 1000, ttlSeconds: 10 });
    expect(clock.endMs).to.equal(11_500);
  });

  it('does not hold before the first answer, and no longer after the end', () => {
    const clock = new LeaseClock();
    expect(clock.endMs).to.equal(Number.NEGATIVE_INFINITY);
    clock.renewed({ sentMs: 0, ttlSeconds: 10 });
    clock.ended();
    expect(clock.endMs).to.equal(Number.NEGATIVE_INFINITY);
  });
});
