import { clockRateError, outlastedBy, undetectedPauseMs } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { LeaseClock } from '../../src/lease/lease-clock.ts';

describe('the clock of a lease', () => {
  it('counts from when the keep-alive was sent, and less than etcd does', () => {
    const clock = new LeaseClock();
    clock.renewed({ sentMs: 1000, ttlSeconds: 10 });
    expect(clock.endMs).to.equal(1000 + outlastedBy(10_000));
  });

  it('ends before the clock of etcd, or of another node, has counted the whole term', () => {
    const rate = fc.constantFrom(1 - clockRateError, 1, 1 + clockRateError);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), rate, rate, (ttlSeconds, ownRate, otherRate) => {
        const clock = new LeaseClock();
        clock.renewed({ sentMs: 0, ttlSeconds });
        expect(clock.endMs / ownRate + undetectedPauseMs).to.be.at.most((1000 * ttlSeconds) / otherRate);
      }),
    );
  });

  it('does not go back when answers overtake each other', () => {
    const clock = new LeaseClock();
    clock.renewed({ sentMs: 2000, ttlSeconds: 10 });
    clock.renewed({ sentMs: 1000, ttlSeconds: 10 });
    expect(clock.endMs).to.equal(2000 + outlastedBy(10_000));
  });

  it('does not hold before the first answer, and no longer after the end', () => {
    const clock = new LeaseClock();
    expect(clock.endMs).to.equal(Number.NEGATIVE_INFINITY);
    clock.renewed({ sentMs: 0, ttlSeconds: 10 });
    clock.ended();
    expect(clock.endMs).to.equal(Number.NEGATIVE_INFINITY);
  });
});
