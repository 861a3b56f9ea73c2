import { uptime } from 'node:os';

/** This machine's clocks, read one after the other, in milliseconds. */
export interface ClockReading {
  /** The monotonic clock, before and after the others: they were read at some moment between. */
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly wallMs: number;
  /** Time since boot, which a suspension counts in. Absent where it was not read. */
  readonly bootMs?: number;
}

/** Differences below this are left to the resolution of the clocks; the leader lease has room for them. */
export const toleranceMs = 20;
/**
 * Steps to which the time since boot may be rounded down: `/proc/uptime` counts hundredths of a second, but whole seconds in some containers, and so
 * does what is asked where that file cannot be read.
 */
const bootStepsMs = [1000, 100] as const;
const bootStepMsLeast = 10;

/** Bounds of how far a clock is ahead of the monotonic one. */
interface Ahead {
  readonly leastMs: number;
  readonly mostMs: number;
}

/**
 * Notices that the monotonic clock stood still while the wall clock or the time since boot went on, as on a suspended virtual machine, and
 * that the wall clock was set. All leases and heartbeats count by the monotonic clock, so none from before such a moment may be relied on.
 * Each clock is compared with its distance at the start, or after the last jump, so that many short pauses add up. A pause that no clock
 * of the machine shows cannot be noticed.
 */
export class ClockJump {
  #wall: Ahead;
  #boot: Ahead | undefined;
  #jumpedMs = Number.NEGATIVE_INFINITY;

  constructor(first: ClockReading) {
    this.#wall = wallAhead(first);
    this.#boot = bootAhead(first);
  }

  /** Reading of the monotonic clock when the newest jump was noticed; negative infinity before the first. */
  get jumpedMs(): number {
    return this.#jumpedMs;
  }

  /** Returns by how many milliseconds a clock jumped against the monotonic one since the last look; 0 when none did. */
  look(reading: ClockReading): number {
    const [wall, boot] = [wallAhead(reading), bootAhead(reading)];
    const wallMs = distance(this.#wall, wall);
    const bootMs = this.#boot && boot ? distance(this.#boot, boot) : 0;
    const jumpMs = Math.abs(bootMs) > Math.abs(wallMs) ? bootMs : wallMs;
    if (Math.abs(jumpMs) > toleranceMs) {
      this.#jumpedMs = reading.afterMs;
      this.#wall = wall;
      if (boot !== undefined) this.#boot = boot;
      return jumpMs;
    }
    this.#wall = narrowed(this.#wall, wall);
    if (boot !== undefined) this.#boot = this.#boot === undefined ? boot : narrowed(this.#boot, boot);
    return 0;
  }
}

/** Reads the monotonic and the wall clock. */
export function readWallClock(): ClockReading {
  const beforeMs = performance.now();
  const wallMs = Date.now();
  return { beforeMs, wallMs, afterMs: performance.now() };
}

/** Reads the time since boot too, which opens a file of the system's. */
export function readClocks(): ClockReading {
  const beforeMs = performance.now();
  const [wallMs, bootMs] = [Date.now(), 1000 * uptime()];
  return { beforeMs, wallMs, bootMs, afterMs: performance.now() };
}

/** `Date.now` rounds down to a millisecond. */
const wallAhead = ({ wallMs, beforeMs, afterMs }: ClockReading): Ahead => ({
  leastMs: wallMs - afterMs,
  mostMs: wallMs + 1 - beforeMs,
});

function bootAhead({ bootMs, beforeMs, afterMs }: ClockReading): Ahead | undefined {
  if (bootMs === undefined) return undefined;
  const stepMs = bootStepsMs.find((step) => Math.round(bootMs) % step === 0) ?? bootStepMsLeast;
  return { leastMs: bootMs - afterMs, mostMs: bootMs + stepMs - beforeMs };
}

/** How far apart two bounds are at least, positive where the second is above; 0 where they overlap. */
function distance(first: Ahead, second: Ahead): number {
  if (second.leastMs > first.mostMs) return second.leastMs - first.mostMs;
  return Math.min(0, second.mostMs - first.leastMs);
}

/** Returns the bounds that both allow; the first where they do not overlap, so that small steps add up. */
function narrowed(first: Ahead, second: Ahead): Ahead {
  const both = { leastMs: Math.max(first.leastMs, second.leastMs), mostMs: Math.min(first.mostMs, second.mostMs) };
  return both.leastMs <= both.mostMs ? both : first;
}
