import type { SimClock, SimRandom } from '@transitd/raft-sim';
import type { Frame } from '../../src/stream/frame.ts';
import { decodeFrame } from '../../src/stream/frame-codec.ts';
import type { Site } from './site.ts';

export interface LinkFaults {
  /** Share of the frames that are lost, and soon afterwards their connection. */
  readonly loss: number;
  readonly delayMinMs: number;
  readonly delayMaxMs: number;
}

/** Links that delay and drop frames, and can be cut or stall. */
export class Links {
  readonly #clock: SimClock;
  readonly #random: SimRandom;
  readonly #faults: LinkFaults;
  readonly #cut = new Set<string>();
  /** Until when nothing arrives, by direction. */
  readonly #stalledUntil = new Map<string, number>();
  isHealthy = false;

  constructor({ clock, random, faults }: { clock: SimClock; random: SimRandom; faults: LinkFaults }) {
    this.#clock = clock;
    this.#random = random;
    this.#faults = faults;
  }

  cut(a: Site, b: Site): void {
    this.#cut.add([a.name, b.name].sort().join());
  }

  heal(): void {
    this.#cut.clear();
  }

  /** Lets nothing arrive in one direction for a while, after which everything arrives. */
  stall(from: Site, to: Site, ms: number): void {
    this.#stalledUntil.set(`${from.name},${to.name}`, this.#clock.now() + ms);
  }

  /** Opens one direction of a connection. */
  open(from: Site, to: Site): Stream {
    let lastMs = 0;
    /** Plans a delivery after all earlier ones. */
    const later = (arrive: () => void, lost: () => void): void => {
      const { delayMinMs, delayMaxMs } = this.#faults;
      const nowMs = this.#clock.now();
      const delayMs = this.isHealthy ? 3 : this.#random.between(delayMinMs, delayMaxMs);
      lastMs = Math.max(lastMs, nowMs + delayMs, this.#stalledUntil.get(`${from.name},${to.name}`) ?? 0);
      this.#clock.after(lastMs - nowMs, () => {
        if (this.#cut.has([from.name, to.name].sort().join()) || !from.isUp || !to.isUp) lost();
        else to.whenAwake(arrive);
      });
    };
    return {
      send: (bytes, deliver, lost) => {
        const isLost = !this.isHealthy && this.#random.chance(this.#faults.loss);
        // A connection does not survive a lost frame for long, but what was sent after it may still arrive.
        if (isLost) this.#clock.after(50, lost);
        else later(() => deliver(decodeFrame(bytes)), lost);
      },
      end: (closed) => later(closed, () => undefined),
    };
  }
}

/** One direction of a connection. Frames arrive in order. */
export interface Stream {
  /** Delivers a frame some time later, or never, and then reports the connection as lost. */
  readonly send: (bytes: Uint8Array, deliver: (frame: Frame) => void, lost: () => void) => void;
  /** Reports the end of the connection after everything that was sent. */
  readonly end: (closed: () => void) => void;
}
