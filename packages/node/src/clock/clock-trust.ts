/** Both clocks, read together. */
export interface ClockSample {
  /** UTC in milliseconds since 1970. It can be set, by hand or by a time service. */
  readonly wallMs: number;
  /** Milliseconds since a fixed moment. It never goes back. */
  readonly monotonicMs: number;
}

interface ClockTrustOptions {
  /** Window over which the wall clock is compared with the monotonic clock: slewing is slow, but adds up. */
  readonly windowMs: number;
  /** Largest deviation from the monotonic clock within the window. */
  readonly toleranceMs: number;
  /** Longest time without trust. After that the wall clock's time is accepted. */
  readonly holdMsMax: number;
}

/** Deletions are at most an hour late. This does no harm to the records, and it leaves time to correct the clock. */
export const defaultClockTrust: ClockTrustOptions = { windowMs: 3_600_000, toleranceMs: 10_000, holdMsMax: 3_600_000 };

/**
 * `lost`: the wall clock deviates. `returned`: it no longer does. `accepted`: it deviated for `holdMsMax`, so its time is trusted from then
 * on.
 */
type ClockChange = 'lost' | 'returned' | 'accepted';

interface Offset {
  readonly monotonicMs: number;
  /** Wall clock minus monotonic clock. */
  readonly offsetMs: number;
}

/** Maximum number of samples that are kept for one window. */
const samplesMax = 64;

/**
 * Decides whether the wall clock is trusted: not while it deviates from the monotonic clock by more than the tolerance, counted from the
 * oldest trusted sample of the window. Samples taken without trust are discarded, so a clock that is set wrong and then corrected has no
 * later effect. Pure: it gets the samples, and reads no clock.
 */
export class ClockTrust {
  readonly #options: ClockTrustOptions;
  /** Trusted samples, the oldest first; at least one. */
  #offsets: readonly [Offset, ...Offset[]];
  #deviationMs = 0;
  #heldSinceMs: number | undefined;

  constructor(first: ClockSample, options: ClockTrustOptions = defaultClockTrust) {
    this.#options = options;
    this.#offsets = [offsetOf(first)];
  }

  get isTrusted(): boolean {
    return this.#heldSinceMs === undefined;
  }

  /** How far the wall clock was ahead at the newest sample; negative if it was behind. */
  get deviationMs(): number {
    return this.#deviationMs;
  }

  /** Returns the time that the wall clock would show if it had run like the monotonic one, in whole milliseconds since 1970. */
  steadyMs(monotonicMs: number): number {
    return Math.floor(monotonicMs + this.#offsets[0].offsetMs);
  }

  /** Adds a sample, with `monotonicMs` never decreasing; returns the change of trust, if any. */
  observe(sample: ClockSample): ClockChange | undefined {
    const { toleranceMs, holdMsMax } = this.#options;
    const offset = offsetOf(sample);
    this.#deviationMs = offset.offsetMs - this.#offsets[0].offsetMs;
    if (Math.abs(this.#deviationMs) <= toleranceMs) {
      const change = this.isTrusted ? undefined : 'returned';
      this.#heldSinceMs = undefined;
      this.#keep(offset);
      return change;
    }
    const change = this.isTrusted ? 'lost' : undefined;
    this.#heldSinceMs ??= offset.monotonicMs;
    if (offset.monotonicMs - this.#heldSinceMs < holdMsMax) return change;
    this.#heldSinceMs = undefined;
    this.#offsets = [offset];
    this.#deviationMs = 0;
    return 'accepted';
  }

  /** Keeps a trusted sample, unless one was kept a moment ago; drops those older than the window. */
  #keep(offset: Offset): void {
    const { windowMs } = this.#options;
    const newest = this.#offsets.at(-1) ?? offset;
    if (offset.monotonicMs - newest.monotonicMs < windowMs / samplesMax) return;
    const [first = offset, ...rest] = [...this.#offsets, offset].filter(
      ({ monotonicMs }) => offset.monotonicMs - monotonicMs <= windowMs,
    );
    this.#offsets = [first, ...rest];
  }
}

const offsetOf = ({ wallMs, monotonicMs }: ClockSample): Offset => ({ monotonicMs, offsetMs: wallMs - monotonicMs });
