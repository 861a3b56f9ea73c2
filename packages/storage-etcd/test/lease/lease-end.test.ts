import { clockRateError, outlastedBy, undetectedPauseMs } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { LeaseEnd } from '../../src/lease/lease-end.ts';

describe('the end of a lease', () => {
  it('counts from when the keep-alive was sent, and less than etcd does', () => {
    const end = new LeaseEnd();
    end.renewed({ sentMs: 1000, ttlSeconds: 10 });
    expect(end.ms).to.equal(1000 + outlastedBy(10_000));
  });

  it('ends before the clock of etcd, or of another node, has counted the whole term', () => {
    const rate = fc.constantFrom(1 - clockRateError, 1, 1 + clockRateError);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), rate, rate, (ttlSeconds, ownRate, otherRate) => {
        const end = new LeaseEnd();
        end.renewed({ sentMs: 0, ttlSeconds });
        expect(end.ms / ownRate + undetectedPauseMs).to.be.at.most((1000 * ttlSeconds) / otherRate);
      }),
    );
  });

  it('does not go back when answers overtake each other', () => {
    const end = new LeaseEnd();
    end.renewed({ sentMs: 2000, ttlSeconds: 10 });
    end.renewed({ sentMs: 1000, ttlSeconds: 10 });
    expect(end.ms).to.equal(2000 + outlastedBy(10_000));
  });

  it('does not hold before the first answer, and no longer after the end', () => {
    const end = new LeaseEnd();
    expect(end.ms).to.equal(Number.NEGATIVE_INFINITY);
    end.renewed({ sentMs: 0, ttlSeconds: 10 });
    end.ended();
    expect(end.ms).to.equal(Number.NEGATIVE_INFINITY);
  });
});
