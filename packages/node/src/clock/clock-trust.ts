/** One look at both clocks, taken together. */
export interface ClockSample {
  /** UTC, in milliseconds since 1970: may be set, by hand or by a time service. */
  readonly wallMs: number;
  /** In milliseconds since any fixed moment: only goes forward. */
  readonly monotonicMs: number;
}

export interface ClockTrustOptions {
  /** Over how long the wall clock is compared: it may be slewed a little in each moment, and by much in all. */
  readonly windowMs: number;
  /** How far it may depart from the monotonic clock within the window. */
  readonly toleranceMs: number;
  /** For how long it is distrusted at most; then the time that it shows is taken as it is. */
  readonly holdMsMax: number;
}

/** A token is deleted an hour late at most, which is no burden for the records and leaves time to set a clock right. */
export const usualClockTrust: ClockTrustOptions = { windowMs: 3_600_000, toleranceMs: 10_000, holdMsMax: 3_600_000 };

/** `lost`: the wall clock has departed. `returned`: it is back where it was. `accepted`: it was held for as long as may be. */
export type ClockChange = 'lost' | 'returned' | 'accepted';

interface Offset {
  readonly monotonicMs: number;
  /** Wall clock minus monotonic clock. */
  readonly offsetMs: number;
}

/** Samples kept for one window. */
const samplesMax = 64;

/**
 * Whether a wall clock is to be trusted: it is not while it departs by more than the tolerance from where the monotonic clock puts it,
 * counted from the oldest trusted sample of the window. Samples taken meanwhile are never trusted, so a clock that is set and set back
 * leaves nothing behind. Pure: it sees the samples that it is given, and no clock.
 */
export class ClockTrust {
  readonly #options: ClockTrustOptions;
  /** Trusted ones, the oldest first; at least one. */
  #offsets: readonly [Offset, ...Offset[]];
  #deviationMs = 0;
  #heldSinceMs: number | undefined;

  constructor(first: ClockSample, options: ClockTrustOptions = usualClockTrust) {
    this.#options = options;
    this.#offsets = [offsetOf(first)];
  }

  get isTrusted(): boolean {
    return this.#heldSinceMs === undefined;
  }

  /** By how much the wall clock was ahead at the newest sample; negative when it was behind. */
  get deviationMs(): number {
    return this.#deviationMs;
  }

  /** The time that the wall clock would show had it gone on like the monotonic one; whole milliseconds since 1970. */
  steadyMs(monotonicMs: number): number {
    return Math.floor(monotonicMs + this.#offsets[0].offsetMs);
  }

  /** Takes a sample in; `monotonicMs` never falls. Returns the change of trust that it made, if any. */
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

  /** Adds a trusted sample, unless one was added a moment ago; what the window has passed is dropped. */
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
