import type { SimClock } from '../../fakes/sim-clock.ts';
import type { Coverage } from '../checks/coverage.ts';
import { holds } from '../checks/violation.ts';

interface Frame {
  readonly number: number;
  readonly arrive: () => void;
}

interface Connection {
  /** Frames that were sent and have not arrived, in order. */
  readonly frames: Frame[];
  /** When the newest frame arrives, unless the connection stalls. */
  arrivesMs: number;
  stalledUntilMs: number;
}

/** One direction between two nodes. */
interface Link {
  /** The newest connection that the receiver has accepted. */
  connection: Connection;
  isOpen: boolean;
  sent: number;
  /** Number of the newest frame that arrived. */
  arrived: number;
}

const connected = (): Connection => ({ frames: [], arrivesMs: 0, stalledUntilMs: 0 });

/**
 * Connections as the product has them, one for each ordered pair of nodes: frames arrive in the order in which they were sent, a connection
 * may stall, and only its end loses frames, all after some frame.
 */
export class Streams {
  readonly #clock: SimClock;
  readonly #coverage: Coverage;
  readonly #links = new Map<number, Link>();

  constructor({ clock, coverage }: { readonly clock: SimClock; readonly coverage: Coverage }) {
    this.#clock = clock;
    this.#coverage = coverage;
  }

  /** Sends a frame, which is lost while there is no connection. */
  send(id: number, delayMs: number, arrive: () => void): void {
    const link = this.#link(id);
    if (!link.isOpen) return;
    const { connection } = link;
    const nowMs = this.#clock.now();
    link.sent += 1;
    connection.frames.push({ number: link.sent, arrive });
    connection.arrivesMs = Math.max(connection.arrivesMs, nowMs + delayMs);
    this.#clock.after(connection.arrivesMs - nowMs, () => this.#arrives(link, connection));
  }

  /** Holds back every frame that has not arrived, and those sent later. */
  stall(id: number, durationMs: number): void {
    const { connection } = this.#link(id);
    connection.stalledUntilMs = Math.max(connection.stalledUntilMs, this.#clock.now() + durationMs);
    this.#coverage.met('connection stalled');
  }

  /** Ends a connection. Of the frames under way, `kept` may still arrive until the receiver accepts the next connection. */
  end(id: number, { kept, reconnectMs }: { readonly kept: number; readonly reconnectMs: number }): void {
    const link = this.#link(id);
    if (!link.isOpen) return;
    link.isOpen = false;
    if (link.connection.frames.length > kept) this.#coverage.met('connection ended with frames under way');
    link.connection.frames.splice(kept);
    this.#clock.after(reconnectMs, () => {
      link.connection = connected();
      link.isOpen = true;
    });
  }

  #arrives(link: Link, connection: Connection): void {
    const waitsMs = connection.stalledUntilMs - this.#clock.now();
    if (waitsMs > 0) {
      this.#clock.after(waitsMs, () => this.#arrives(link, connection));
      return;
    }
    const frame = connection.frames.shift();
    if (frame === undefined) return;
    if (link.connection !== connection) {
      this.#coverage.met('frame of a replaced connection dropped');
      return;
    }
    const { number } = frame;
    holds('frames arrive in the order in which they were sent', number > link.arrived, () => ({ number, arrived: link.arrived }));
    link.arrived = number;
    frame.arrive();
  }

  #link(id: number): Link {
    const known = this.#links.get(id);
    if (known !== undefined) return known;
    const link: Link = { connection: connected(), isOpen: true, sent: 0, arrived: 0 };
    this.#links.set(id, link);
    return link;
  }
}
