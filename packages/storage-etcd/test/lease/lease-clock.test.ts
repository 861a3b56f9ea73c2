import { expect } from 'chai';
import { LeaseClock } from '../../src/lease/lease-clock.ts';

describe('the clock of a lease', () => {
  it('counts from when the keep-alive was sent, and less than etcd does', () => {
    const clock = new LeaseClock();
    clock.renewed({ sentMs: 1000, ttlSeconds: 10 });
    expect(clock.isHeld(10_499)).to.equal(true);
    expect(clock.isHeld(10_500)).to.equal(false);
  });

  it('does not go back when answers overtake each other', () => {
    const clock = new LeaseClock();
    clock.renewed({ sentMs: 2000, ttlSeconds: 10 });
    clock.renewed({ sentMs: 1000, ttlSeconds: 10 });
    expect(clock.isHeld(11_000)).to.equal(true);
  });

  it('does not hold before the first answer, and no longer after the end', () => {
    const clock = new LeaseClock();
    expect(clock.isHeld(0)).to.equal(false);
    clock.renewed({ sentMs: 0, ttlSeconds: 10 });
    clock.ended();
    expect(clock.isHeld(1)).to.equal(false);
  });
});
