import { expect } from 'chai';
import fc from 'fast-check';
import { ClockJump, type ClockReading } from '../src/clock-jump.ts';
import { clockRateError, undetectedPauseMs } from '../src/clock-rates.ts';

/** A machine whose clocks can be moved apart. */
class Machine {
  readonly #bootStepMs: number;
  #monotonicMs = 5_000;
  #wallMs = 1_700_000_000_000;
  #bootMs = 90_120;

  /** @param bootStepMs - the time since boot is rounded down to a multiple of this */
  constructor({ bootStepMs = 10 }: { readonly bootStepMs?: number } = {}) {
    this.#bootStepMs = bootStepMs;
  }

  runs(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
    this.#bootMs += ms;
  }

  /** The machine is suspended: the monotonic clock stops. */
  suspended(ms: number, { seenBy = ['wall', 'boot'] }: { seenBy?: readonly ('wall' | 'boot')[] } = {}): void {
    if (seenBy.includes('wall')) this.#wallMs += ms;
    if (seenBy.includes('boot')) this.#bootMs += ms;
  }

  /** The monotonic clock goes back, and the wall clock with it if `wall` is true. The time since boot runs on. */
  wentBack(ms: number, { wall }: { readonly wall: boolean }): void {
    this.#monotonicMs -= ms;
    if (wall) this.#wallMs -= ms;
  }

  wallClockSet(ms: number): void {
    this.#wallMs += ms;
  }

  read({ boot = true, takesMs = 0 } = {}): ClockReading {
    const beforeMs = this.#monotonicMs;
    this.runs(takesMs / 2);
    const [wallMs, bootMs] = [Math.floor(this.#wallMs), Math.floor(this.#bootMs / this.#bootStepMs) * this.#bootStepMs];
    this.runs(takesMs / 2);
    return { beforeMs, afterMs: this.#monotonicMs, wallMs, ...(boot && { bootMs }) };
  }
}

describe('ClockJump', () => {
  it('detects nothing while all clocks run, however long a reading takes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ms: fc.double({ min: 0, max: 90_000, noNaN: true }), takesMs: fc.nat(500), boot: fc.boolean() })),
        (steps) => {
          const machine = new Machine();
          const clocks = new ClockJump(machine.read());
          for (const { ms, takesMs, boot } of steps) {
            machine.runs(ms);
            expect(clocks.compare(machine.read({ boot, takesMs }))).to.equal(0);
          }
          expect(clocks.jumpedMs).to.equal(Number.NEGATIVE_INFINITY);
        },
      ),
    );
  });

  for (const bootStepMs of [10, 100, 1_000]) {
    it(`detects nothing while all clocks run and the time since boot is rounded down to ${bootStepMs} ms, even if that changes`, () => {
      fc.assert(
        fc.property(fc.array(fc.nat(3_000)), fc.boolean(), (steps, changes) => {
          const [exact, coarse] = [new Machine(), new Machine({ bootStepMs })];
          const clocks = new ClockJump(exact.read());
          for (const [position, ms] of steps.entries()) {
            for (const machine of [exact, coarse]) machine.runs(ms);
            const machine = changes && position % 2 === 0 ? exact : coarse;
            expect(clocks.compare(machine.read())).to.equal(0);
          }
        }),
      );
    });

    it(`detects a suspension that only a time since boot in steps of ${bootStepMs} ms shows`, () => {
      const machine = new Machine({ bootStepMs });
      const clocks = new ClockJump(machine.read());
      const runs = (): number => {
        machine.runs(50);
        return clocks.compare(machine.read());
      };
      for (let ticks = 0; ticks < 40; ticks++) expect(runs()).to.equal(0);
      machine.suspended(1_400, { seenBy: ['boot'] });
      expect(Array.from({ length: 20 }, runs).filter((jumpMs) => jumpMs !== 0)).not.to.deep.equal([]);
    });
  }

  for (const { what, act, boot } of [
    { what: 'a suspension', act: (machine: Machine) => machine.suspended(1_400), boot: false },
    {
      what: 'a suspension that only the time since boot shows',
      act: (machine: Machine) => machine.suspended(1_400, { seenBy: ['boot'] }),
      boot: true,
    },
    { what: 'a wall clock that is set forward', act: (machine: Machine) => machine.wallClockSet(1_400), boot: false },
    { what: 'a wall clock that is set back', act: (machine: Machine) => machine.wallClockSet(-1_400), boot: false },
  ])
    it(`detects ${what}, once`, () => {
      const machine = new Machine();
      const clocks = new ClockJump(machine.read());
      machine.runs(700);
      act(machine);
      const reading = machine.read({ boot });
      expect(Math.abs(clocks.compare(reading))).to.be.within(1_380, 1_420);
      expect(clocks.jumpedMs).to.equal(reading.afterMs);
      machine.runs(50);
      if (what !== 'a suspension') expect(clocks.compare(machine.read())).to.equal(0);
    });

  for (const wall of [true, false])
    it(`detects that the monotonic clock went back${wall ? ' with the wall clock' : ''}: nothing counts that was requested before`, () => {
      fc.assert(
        fc.property(fc.integer({ min: 1, max: 90_000 }), fc.array(fc.nat(2_000)), (backMs, steps) => {
          const machine = new Machine();
          const clocks = new ClockJump(machine.read());
          machine.runs(700);
          const last = machine.read();
          expect(clocks.compare(last)).to.equal(0);
          machine.wentBack(backMs, { wall });
          expect(clocks.compare(machine.read({ boot: false }))).to.be.within(backMs, backMs + 2);
          for (const ms of steps) {
            machine.runs(ms);
            clocks.compare(machine.read());
            expect(clocks.jumpedMs).to.be.at.least(last.afterMs);
          }
        }),
      );
    });

  it('detects that the monotonic clock went back during a reading', () => {
    const machine = new Machine();
    const clocks = new ClockJump(machine.read());
    machine.runs(700);
    const { beforeMs, ...reading } = machine.read();
    expect(clocks.compare({ ...reading, beforeMs, afterMs: beforeMs - 400 })).to.equal(400);
    expect(clocks.jumpedMs).to.equal(beforeMs);
  });

  it('detects pauses that are too short one by one but add up', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ ranMs: fc.integer({ min: 1, max: 500 }), pauseMs: fc.nat(15) })), (steps) => {
        const machine = new Machine();
        const clocks = new ClockJump(machine.read());
        let pausedMs = 0;
        for (const { ranMs, pauseMs } of steps) {
          machine.runs(ranMs);
          machine.suspended(pauseMs);
          pausedMs += pauseMs;
          if (clocks.compare(machine.read()) !== 0) pausedMs = 0;
          // The wall clock of a slow machine shows less of a pause than its real time.
          expect(pausedMs).to.be.at.most((1 - clockRateError) * undetectedPauseMs);
        }
      }),
    );
  });

  it('reports the time of the newest reading that showed a jump', () => {
    const machine = new Machine();
    const clocks = new ClockJump(machine.read());
    machine.suspended(500);
    clocks.compare(machine.read());
    machine.runs(5_000);
    machine.suspended(500);
    const second = machine.read();
    clocks.compare(second);
    expect(clocks.jumpedMs).to.equal(second.afterMs);
  });
});
