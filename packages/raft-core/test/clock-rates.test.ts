import { expect } from 'chai';
import fc from 'fast-check';
import { clockRateError, outlastedBy, outlasting, undetectedPauseMs } from '../src/clock-rates.ts';
import { checkLimits, raftLimits } from '../src/core/contract/limits.ts';
import { ElectionClock } from '../src/core/election/election-clock.ts';

/** Any rate that operators must keep; often one of the two limits. */
const rate = fc.oneof(
  fc.constantFrom(1 - clockRateError, 1 + clockRateError),
  fc.double({ min: 1 - clockRateError, max: 1 + clockRateError, noNaN: true }),
);
const clocks = fc.record({ ownRate: rate, otherRate: rate, pauseMs: fc.double({ min: 0, max: undetectedPauseMs, noNaN: true }) });

/** The real time at which a permission ends that a clock counts, on a machine that was suspended meanwhile. */
const endOf = (ms: number, { rate: counts, pauseMs }: { readonly rate: number; readonly pauseMs: number }): number =>
  ms / counts + pauseMs;

describe('the rates of two clocks', () => {
  it('may differ by more than chrony slews a clock, each', () => {
    expect(clockRateError).to.be.above(1 / 12);
  });

  it('never let a permission outlast the wait for it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3_600_000 }), clocks, (ms, { ownRate, otherRate, pauseMs }) => {
        expect(outlasting(ms) / ownRate).to.be.at.least(endOf(ms, { rate: otherRate, pauseMs }) - 1e-6);
      }),
    );
  });

  it('never let the longest permission outlast the wait that limits it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3_600_000 }), clocks, (ms, { ownRate, otherRate, pauseMs }) => {
        const longestMs = outlastedBy(ms);
        if (longestMs > 0) expect(ms / otherRate).to.be.at.least(endOf(longestMs, { rate: ownRate, pauseMs }) - 1e-6);
        expect(longestMs).to.be.at.least(0);
      }),
    );
  });

  it('leave as much time as they can', () => {
    const slowest = { rate: 1 - clockRateError, pauseMs: undetectedPauseMs };
    for (const ms of [200, 1_000, 5_000, 60_000]) {
      expect((outlasting(ms) - 1) / (1 + clockRateError), `${ms} ms`).to.be.below(endOf(ms, slowest));
      expect(endOf(outlastedBy(ms) + 1, slowest), `${ms} ms`).to.be.above(ms / (1 + clockRateError));
    }
  });

  it('limit the length of a lease', () => {
    for (const electionMs of [1_000, 60_000]) {
      const check = (leaseMs: number) => () => checkLimits({ ...raftLimits, electionMs, leaseMs });
      expect(check(outlastedBy(electionMs))).not.to.throw();
      expect(check(outlastedBy(electionMs) + 1)).to.throw(/a lease ends before the promise that backs it/);
    }
  });

  it('end every lease that the limits allow before a vote for another node', () => {
    const limits = fc.integer({ min: 1_000, max: 60_000 }).chain((electionMs) => {
      const atLimit = fc.nat(40).map((above) => outlastedBy(electionMs) - 20 + above);
      const leaseMs = fc.oneof(fc.integer({ min: 1, max: electionMs }), atLimit);
      return fc.record({ electionMs: fc.constant(electionMs), leaseMs, isSuspected: fc.boolean() });
    });
    fc.assert(
      fc.property(limits, clocks, ({ electionMs, leaseMs, isSuspected }, { ownRate, otherRate, pauseMs }) => {
        const isAllowed = passes(() => checkLimits({ ...raftLimits, electionMs, leaseMs }));
        fc.pre(isAllowed);
        const clock = new ElectionClock({ electionMs, electionJitterMs: electionMs }, 1);
        clock.begin(-2 * electionMs); // of the voter, which has run for long enough
        clock.heardLeader(0, { leader: 2, term: 1, leaseMs });
        if (isSuspected) clock.suspect(0, 0);
        const endMs = endOf(leaseMs, { rate: ownRate, pauseMs });
        expect(clock.refusal((endMs - 1e-6) * otherRate)).to.equal('a leader was heard');
      }),
    );
  });
});

function passes(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}
