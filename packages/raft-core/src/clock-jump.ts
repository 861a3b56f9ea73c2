import { clockRateError, undetectedPauseMs } from './clock-rates.ts';

/** The machine's clocks, read one after the other, in milliseconds. */
export interface ClockReading {
  /** The monotonic clock, read before and after the others. */
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly wallMs: number;
  /** Time since boot, including suspensions. Absent if it was not read. */
  readonly bootMs?: number;
}

/** `Date.now` rounds down to a millisecond, at each of the two readings that are compared. */
const roundingMs = 2;
/**
 * Smaller differences are attributed to the resolution of the clocks. All waits for a permission of another node allow for a pause of
 * `undetectedPauseMs`, of which the wall clock of a slow machine shows less.
 */
const toleranceMs = (1 - clockRateError) * undetectedPauseMs - roundingMs;
/**
 * The time since boot may be rounded down to one of these steps. `/proc/uptime` counts hundredths of a second, but in some containers only
 * whole seconds. The source that replaces an unreadable file also counts whole seconds.
 */
const bootStepsMs = [1000, 100] as const;
const bootStepMsLeast = 10;

/** Bounds of a clock's offset from the monotonic clock. */
interface OffsetBounds {
  readonly leastMs: number;
  readonly mostMs: number;
}

/**
 * Detects that the monotonic clock stopped while the wall clock or the time since boot kept running, as on a suspended virtual machine.
 * Also detects that the wall clock was set, and that the monotonic clock itself went back, alone or with the wall clock: it never should.
 * Leases and heartbeats are timed by the monotonic clock, so none of them from before a jump may be relied on. Each clock is compared with
 * its offset at the start or after the last jump, so that many short pauses add up. A pause that no clock of the machine shows cannot be
 * detected.
 */
export class ClockJump {
  #wall: OffsetBounds;
  #boot: OffsetBounds | undefined;
  #jumpedMs = Number.NEGATIVE_INFINITY;
  /** The monotonic time of the last reading. */
  #lastMs: number;

  constructor(first: ClockReading) {
    this.#lastMs = first.afterMs;
    this.#wall = wallOffset(first);
    this.#boot = bootOffset(first);
  }

  /**
   * Monotonic time when the newest jump was detected; negative infinity before the first. If the monotonic clock went back, the time from
   * which it did: everything was requested before that, by a clock that shows an earlier time now.
   */
  get jumpedMs(): number {
    return this.#jumpedMs;
  }

  /**
   * Compares a reading with the last one. Returns how many milliseconds a clock jumped against the monotonic clock since then; 0 if none
   * did.
   */
  compare(reading: ClockReading): number {
    const [wall, boot] = [wallOffset(reading), bootOffset(reading)];
    const wallMs = distance(this.#wall, wall);
    const bootMs = this.#boot && boot ? distance(this.#boot, boot) : 0;
    const { beforeMs, afterMs } = reading;
    const lastMs = Math.max(this.#lastMs, beforeMs);
    const backMs = Math.max(0, this.#lastMs - beforeMs, beforeMs - afterMs);
    this.#lastMs = afterMs;
    const othersMs = Math.abs(bootMs) > Math.abs(wallMs) ? bootMs : wallMs;
    const jumpMs = backMs > Math.abs(othersMs) ? backMs : othersMs;
    if (backMs > 0 || Math.abs(jumpMs) > toleranceMs) {
      this.#jumpedMs = Math.max(this.#jumpedMs, lastMs, afterMs);
      this.#wall = wall;
      if (boot !== undefined) this.#boot = boot;
      return jumpMs;
    }
    this.#wall = narrowed(this.#wall, wall);
    if (boot !== undefined) this.#boot = this.#boot === undefined ? boot : narrowed(this.#boot, boot);
    return 0;
  }
}

/** `Date.now` rounds down to a millisecond. */
const wallOffset = ({ wallMs, beforeMs, afterMs }: ClockReading): OffsetBounds => ({
  leastMs: wallMs - afterMs,
  mostMs: wallMs + 1 - beforeMs,
});

function bootOffset({ bootMs, beforeMs, afterMs }: ClockReading): OffsetBounds | undefined {
  if (bootMs === undefined) return undefined;
  const stepMs = bootStepsMs.find((step) => Math.round(bootMs) % step === 0) ?? bootStepMsLeast;
  return { leastMs: bootMs - afterMs, mostMs: bootMs + stepMs - beforeMs };
}

/** Returns the least distance between two bounds, positive if the second is above; 0 if they overlap. */
function distance(first: OffsetBounds, second: OffsetBounds): number {
  if (second.leastMs > first.mostMs) return second.leastMs - first.mostMs;
  return Math.min(0, second.mostMs - first.leastMs);
}

/** Returns the intersection of two bounds; the first if they do not overlap, so that small steps add up. */
function narrowed(first: OffsetBounds, second: OffsetBounds): OffsetBounds {
  const both = { leastMs: Math.max(first.leastMs, second.leastMs), mostMs: Math.min(first.mostMs, second.mostMs) };
  return both.leastMs <= both.mostMs ? both : first;
}
