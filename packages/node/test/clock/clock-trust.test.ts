import { expect } from 'chai';
import fc from 'fast-check';
import pino from 'pino';
import { ClockTrust, defaultClockTrust } from '../../src/clock/clock-trust.ts';
import { NodeClock } from '../../src/clock/node-clock.ts';

const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
const beginMs = 1_700_000_000_000;
const { toleranceMs, windowMs, holdMsMax } = defaultClockTrust;

/** Both clocks of a machine, sampled every second or as often as a test wants. */
function machine() {
  const clocks = { wallMs: beginMs, monotonicMs: 5 };
  const trust = new ClockTrust({ ...clocks });
  const changes: string[] = [];
  const pass = (ms: number, { everyMs = second, rate = 1 }: { everyMs?: number; rate?: number } = {}): void => {
    for (let left = ms; left > 0; left -= everyMs) {
      clocks.monotonicMs += everyMs;
      clocks.wallMs += everyMs * rate;
      const change = trust.observe({ ...clocks });
      if (change !== undefined) changes.push(change);
    }
  };
  return { clocks, trust, changes, pass };
}

describe('trust in the wall clock', () => {
  it('holds while it runs like the monotonic clock, for any time', () => {
    const { trust, pass, changes } = machine();
    pass(3 * day, { everyMs: 10 * second });
    expect([trust.isTrusted, trust.deviationMs, changes]).to.deep.equal([true, 0, []]);
  });

  for (const { rate, expected, because } of [
    { rate: 1.0005, expected: [], because: 'a time service slews by 500 parts in a million: 1.8 s an hour' },
    { rate: 0.9995, expected: [], because: 'the same, backward' },
    { rate: 1.01, expected: ['lost', 'accepted'], because: 'small steps add up: 36 s in an hour' },
    { rate: 0.99, expected: ['lost', 'accepted'], because: 'the same, backward' },
  ] as const)
    it(`${expected.length === 0 ? 'holds' : 'is lost'} at a rate of ${rate}: ${because}`, () => {
      const { pass, changes } = machine();
      pass(1.5 * hour, { rate });
      expect(changes).to.deep.equal(expected);
    });

  for (const jumpMs of [11 * second, hour, 400 * day, -11 * second, -hour, -400 * day])
    it(`is lost after a jump of ${jumpMs / 1000} s, and returns when the clock is set back`, () => {
      const { clocks, trust, pass, changes } = machine();
      pass(minute);
      clocks.wallMs += jumpMs;
      pass(10 * minute);
      expect([trust.isTrusted, trust.deviationMs, changes]).to.deep.equal([false, jumpMs, ['lost']]);
      const beforeMs = clocks.wallMs - jumpMs;
      expect(trust.steadyMs(clocks.monotonicMs)).to.equal(beforeMs);
      clocks.wallMs -= jumpMs;
      pass(3 * hour);
      expect(changes, 'without later effect').to.deep.equal(['lost', 'returned']);
    });

  it('is not lost after a step within the tolerance', () => {
    const { clocks, pass, changes } = machine();
    clocks.wallMs += toleranceMs - 1;
    pass(hour);
    clocks.wallMs -= toleranceMs - 1;
    pass(hour);
    expect(changes).to.deep.equal([]);
  });

  it('is lost after many small steps', () => {
    const { clocks, pass, changes } = machine();
    for (let step = 0; step < 6; step += 1) {
      clocks.wallMs += 2 * second;
      pass(minute);
    }
    expect(changes).to.deep.equal(['lost']);
  });

  it('returns after an hour of deviation, with the time that the clock then has', () => {
    const { clocks, trust, pass, changes } = machine();
    clocks.wallMs += day;
    pass(holdMsMax);
    expect([trust.isTrusted, changes]).to.deep.equal([false, ['lost']]);
    pass(second);
    expect([trust.isTrusted, trust.deviationMs, changes]).to.deep.equal([true, 0, ['lost', 'accepted']]);
    expect(trust.steadyMs(clocks.monotonicMs)).to.equal(clocks.wallMs);
  });

  it('is never lost for longer than an hour at a time', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -day, max: day }), { minLength: 1, maxLength: 200 }), (jumps) => {
        const { clocks, trust, pass } = machine();
        let lostMs = 0;
        for (const jump of jumps) {
          clocks.wallMs += jump;
          pass(minute, { everyMs: minute });
          lostMs = trust.isTrusted ? 0 : lostMs + minute;
          expect(lostMs).to.be.at.most(holdMsMax);
        }
      }),
    );
  });

  it('keeps the steady time within the tolerance of the right one until it accepts another time', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -day, max: day }), { maxLength: 55 }), (jumps) => {
        const { clocks, trust, pass, changes } = machine();
        for (const jump of jumps) {
          clocks.wallMs += jump;
          pass(minute, { everyMs: minute });
          if (changes.includes('accepted')) return;
          const rightMs = beginMs + (clocks.monotonicMs - 5);
          expect(Math.abs(trust.steadyMs(clocks.monotonicMs) - rightMs)).to.be.at.most(toleranceMs);
        }
      }),
    );
  });

  it('forgets samples that are older than the window', () => {
    const { trust, pass, clocks } = machine();
    pass(windowMs, { rate: 1.002 });
    pass(2 * windowMs);
    expect(trust.deviationMs).to.equal(0);
    expect(trust.steadyMs(clocks.monotonicMs)).to.be.closeTo(clocks.wallMs, 1);
  });
});

describe('NodeClock', () => {
  function node() {
    const clocks = { wallMs: beginMs, monotonicMs: 0 };
    const lines: { level: number; msg: string }[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    return { clocks, lines, clock: new NodeClock(log, () => ({ ...clocks })) };
  }

  for (const jumpMs of [day, -day])
    it(`has the later time, and the earlier one for what is due, after a jump of ${jumpMs / 1000} s`, () => {
      const { clocks, clock } = node();
      clocks.wallMs += jumpMs; // before the first reading
      expect(clock.utcMs()).to.equal(beginMs + Math.max(0, jumpMs));
      expect(clock.dueMs()).to.equal(beginMs + Math.min(0, jumpMs));
      clock.compare();
      clocks.wallMs += minute;
      clocks.monotonicMs += minute;
      expect(clock.utcMs()).to.equal(beginMs + minute + Math.max(0, jumpMs));
      expect(clock.dueMs()).to.equal(beginMs + minute + Math.min(0, jumpMs));
      expect([clock.isTrusted, clock.deviationS]).to.deep.equal([false, jumpMs / 1000]);
    });

  for (const { jumpMs, earlier } of [
    { jumpMs: day + 0.4, earlier: 'steady' },
    { jumpMs: -day, earlier: 'wall' },
  ] as const)
    it(`reports a dispute after a jump of ${jumpMs / 1000} s, and that the steady clock was right once the wall clock is set back`, () => {
      const { clocks, clock } = node();
      const decided: string[] = [];
      const stop = clock.onDecided((right) => decided.push(right));
      expect(clock.current()).to.equal(undefined);
      clocks.wallMs += jumpMs;
      expect(clock.current()).to.deep.equal({ differenceMs: day, earlier });
      expect(decided).to.deep.equal([]);
      clocks.wallMs -= jumpMs;
      expect(clock.current()).to.equal(undefined);
      expect(decided).to.deep.equal(['steady']);
      stop();
      clocks.wallMs += jumpMs;
      clock.compare();
      clocks.wallMs -= jumpMs;
      clock.compare();
      expect(decided).to.deep.equal(['steady']);
    });

  it('reports that the wall clock was right once its time is accepted', () => {
    const { clocks, clock } = node();
    const decided: (string | number)[] = [];
    clock.onDecided((right, aheadMs) => decided.push(right, aheadMs));
    clocks.wallMs -= day;
    clock.compare();
    clocks.wallMs += hour;
    clocks.wallMs += holdMsMax;
    clocks.monotonicMs += holdMsMax;
    expect(clock.current()).to.equal(undefined);
    expect(decided, 'with the deviation that the clock then has').to.deep.equal(['wall', hour - day]);
  });

  it('returns whole milliseconds, on which records and their order rely', () => {
    const { clocks, clock } = node();
    clocks.monotonicMs += 10.7;
    clocks.wallMs += 10;
    expect([clock.utcMs(), clock.dueMs()].every(Number.isInteger)).to.equal(true);
  });

  it('logs when trust is lost, returns, or another time is accepted', () => {
    const { clocks, clock, lines } = node();
    const pass = (ms: number): void => {
      clocks.wallMs += ms;
      clocks.monotonicMs += ms;
      clock.compare();
    };
    clocks.wallMs += day;
    for (let n = 0; n < 5; n += 1) pass(second);
    clocks.wallMs -= day;
    pass(second);
    clocks.wallMs -= day;
    pass(second);
    pass(holdMsMax);
    expect(lines.map(({ level, msg }) => [level, msg.split(':')[0]])).to.deep.equal([
      [50, 'the wall clock deviates from the monotonic clock'],
      [30, 'the wall clock agrees with the monotonic clock again'],
      [50, 'the wall clock deviates from the monotonic clock'],
      [40, 'the wall clock has differed for an hour'],
    ]);
  });
});
