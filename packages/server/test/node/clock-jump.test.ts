import { expect } from 'chai';
import fc from 'fast-check';
import { ClockJump, type ClockReading, readClocks, readWallClock, toleranceMs } from '../../src/node/clock-jump.ts';

/** A machine whose clocks can be moved apart. */
class Machine {
  #monotonicMs = 5_000;
  #wallMs = 1_700_000_000_000;
  #bootMs = 90_000;

  runs(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
    this.#bootMs += ms;
  }

  /** The monotonic clock stands still. */
  suspended(ms: number, { seenBy = ['wall', 'boot'] }: { seenBy?: readonly ('wall' | 'boot')[] } = {}): void {
    if (seenBy.includes('wall')) this.#wallMs += ms;
    if (seenBy.includes('boot')) this.#bootMs += ms;
  }

  wallClockSet(ms: number): void {
    this.#wallMs += ms;
  }

  read({ boot = true, takesMs = 0 } = {}): ClockReading {
    const beforeMs = this.#monotonicMs;
    this.runs(takesMs / 2);
    const [wallMs, bootMs] = [Math.floor(this.#wallMs), Math.floor(this.#bootMs / 10) * 10];
    this.runs(takesMs / 2);
    return { beforeMs, afterMs: this.#monotonicMs, wallMs, ...(boot && { bootMs }) };
  }
}

describe('a jump of the clocks', () => {
  it('is none while all run, however long a reading takes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ms: fc.double({ min: 0, max: 90_000, noNaN: true }), takesMs: fc.nat(500), boot: fc.boolean() })),
        (steps) => {
          const machine = new Machine();
          const clocks = new ClockJump(machine.read());
          for (const { ms, takesMs, boot } of steps) {
            machine.runs(ms);
            expect(clocks.look(machine.read({ boot, takesMs }))).to.equal(0);
          }
          expect(clocks.jumpedMs).to.equal(Number.NEGATIVE_INFINITY);
        },
      ),
    );
  });

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
    it(`is noticed after ${what}, once`, () => {
      const machine = new Machine();
      const clocks = new ClockJump(machine.read());
      machine.runs(700);
      act(machine);
      const reading = machine.read({ boot });
      expect(Math.abs(clocks.look(reading))).to.be.within(1_380, 1_420);
      expect(clocks.jumpedMs).to.equal(reading.afterMs);
      machine.runs(50);
      if (what !== 'a suspension') expect(clocks.look(machine.read())).to.equal(0);
    });

  it('is noticed when pauses add up that are each too short to be', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ ranMs: fc.integer({ min: 1, max: 500 }), pauseMs: fc.nat(15) })), (steps) => {
        const machine = new Machine();
        const clocks = new ClockJump(machine.read());
        let pausedMs = 0;
        for (const { ranMs, pauseMs } of steps) {
          machine.runs(ranMs);
          machine.suspended(pauseMs);
          pausedMs += pauseMs;
          if (clocks.look(machine.read()) !== 0) pausedMs = 0;
          // A millisecond of each clock's resolution beside the tolerance.
          expect(pausedMs).to.be.at.most(toleranceMs + 2);
        }
      }),
    );
  });

  it('counts from the moment of the reading that showed it, also when another follows', () => {
    const machine = new Machine();
    const clocks = new ClockJump(machine.read());
    machine.suspended(500);
    clocks.look(machine.read());
    machine.runs(5_000);
    machine.suspended(500);
    const second = machine.read();
    clocks.look(second);
    expect(clocks.jumpedMs).to.equal(second.afterMs);
  });

  it('is read off the clocks of this machine', () => {
    const wall = readWallClock();
    expect(wall.afterMs).to.be.at.least(wall.beforeMs);
    const { beforeMs, afterMs, bootMs } = readClocks();
    expect(afterMs).to.be.at.least(beforeMs);
    expect(bootMs).to.be.greaterThan(0);
  });
});
