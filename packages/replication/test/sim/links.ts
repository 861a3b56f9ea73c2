import type { SimClock, SimRandom } from '@transitd/raft-core/sim';
import { decodeFrame, encodeFrame, type Frame } from '../../src/index.ts';
import type { ActiveNode, Site } from './site.ts';

export interface LinkFaults {
  readonly loss: number;
  /** Share of the frames that arrive twice. */
  readonly repeats: number;
  /** Frames overtake each other if the two differ. */
  readonly delayMinMs: number;
  readonly delayMaxMs: number;
}

/** One connection between the active nodes of two sites; it ends with either of them. */
export interface Connection {
  readonly ends: readonly [ActiveNode, ActiveNode];
  readonly secondary: Site;
  readonly primary: Site;
  isOpen: boolean;
}

/** Links that delay, drop, repeat and reorder frames, and can be cut. Every frame is encoded and decoded. */
export class Links {
  readonly #clock: SimClock;
  readonly #random: SimRandom;
  readonly #faults: LinkFaults;
  readonly #cut = new Set<string>();
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

  isAlive({ isOpen, ends: [from, to], secondary, primary }: Connection): boolean {
    return isOpen && secondary.active === from && primary.active === to;
  }

  /** Delivers a frame some time later, or never. A connection delivers in order, unless it is faulty. */
  send(from: Site, to: Site, frame: Frame, deliver: (frame: Frame) => void, lost: () => void = () => undefined): void {
    const bytes = encodeFrame(frame);
    const { loss, repeats, delayMinMs, delayMaxMs } = this.#faults;
    const random = this.#random;
    const times = random.chance(this.isHealthy ? 0 : loss) ? 0 : random.chance(this.isHealthy ? 0 : repeats) ? 2 : 1;
    // A connection does not survive a lost frame for long, but what was sent after it may still arrive.
    if (times === 0) this.#clock.after(50, lost);
    for (let copy = 0; copy < times; copy++) {
      this.#clock.after(this.isHealthy ? 3 : random.between(delayMinMs, delayMaxMs), () => {
        const isCut = this.#cut.has([from.name, to.name].sort().join());
        if (isCut || !from.isUp || !to.isUp) lost();
        else deliver(decodeFrame(bytes));
      });
    }
  }
}
